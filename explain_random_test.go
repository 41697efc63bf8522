// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A policyMaker generates random policies and requests with few attributes, so that they match often.
type policyMaker struct {
	*rand.Rand
	now time.Time
}

func (p policyMaker) pick(from ...string) string { return from[p.IntN(len(from))] }

// facts are the attributes with a few values each.
var facts = []struct {
	name   string
	values []string
}{
	{"tenant", []string{"a", "b", "c|d", ""}},
	{"jwt:plan", []string{"pro", "pro+", "free"}},
	{"ip:address", []string{"192.0.2.1", "192.0.2.200", "198.51.100.7", "2001:db8::1", "2001:db8:0:1::1"}},
	{"path", []string{"/", "/v1/x", "/v1/y", "/v2"}},
	{"method", []string{"GET", "POST"}},
	{"header:x-cost", []string{"2", "0.5", "1e2", "no", "7"}},
}

// wanted are values for matches of the first few attributes.
var wanted = [][]string{
	{`"a"`, `["a", "b"]`, `"*"`, `{"not": "a"}`, `"c*"`, `""`},
	{`"pro"`, `"pro*"`, `{"not": ["free", "pro"]}`},
	{`"192.0.2.0/24"`, `"192.0.2.0/25"`, `"2001:db8::/32"`, `{"not": "192.0.2.1"}`, `"*"`},
	{`"/v1/*"`, `"/v1/x"`, `["/", "/v2"]`, `{"not": "/v1/*"}`},
	{`"GET"`, `{"not": "GET"}`},
}

func (p policyMaker) match() string {
	var clauses []string
	for _, i := range p.Perm(len(wanted))[:p.IntN(3)] {
		clauses = append(clauses, fmt.Sprintf("%q: %s", facts[i].name, p.pick(wanted[i]...)))
	}
	return "{" + strings.Join(clauses, ", ") + "}"
}

func (p policyMaker) limit() string {
	n := 1 + p.IntN(6)
	text := p.pick(
		fmt.Sprintf(`"algorithm": "token_bucket", "rate": "%d/%ds", "burst": %d`, n, 1+p.IntN(9), 1+p.IntN(9)),
		fmt.Sprintf(`"algorithm": "token_bucket", "rate": "%d/7s", "burst": %d, "refill": "interval", "anchor": "%s"`, n, n+p.IntN(5), p.pick("epoch", "key", "first")),
		fmt.Sprintf(`"algorithm": "fixed_window", "tokens": %d, "window": "10s", "start": "%ds"`, n, p.IntN(9)),
		fmt.Sprintf(`"algorithm": "sliding_window", "tokens": %d, "window": "10s"`, n),
		fmt.Sprintf(`"algorithm": "sliding_log", "tokens": %d, "window": "10s"`, n),
		fmt.Sprintf(`"algorithm": "leaky_bucket", "rps": 0.5, "queue": %d`, n),
	)
	switch p.IntN(5) {
	case 0:
		text += `, "cost_source": "header:x-cost", "max_cost": 8`
	case 1:
		text += `, "fixed_cost": ` + p.pick("0.25", "2", "3")
	}
	return text
}

func (p policyMaker) rule(name string) string {
	text := fmt.Sprintf(`"name": %q, "match": %s, "limit_keys": [`, name, p.match())
	var keys []string
	for _, i := range p.Perm(3)[:p.IntN(3)] {
		keys = append(keys, strconv.Quote(facts[i].name))
	}
	text += strings.Join(keys, ", ") + "]"
	modes := []string{"enforce", "enforce", "enforce", "shadow", "25%", "60%", "off"}
	if len(keys) == 0 {
		modes = modes[:4]
	}
	text += fmt.Sprintf(`, "mode": %q, "on_missing": %q, "on_store_error": %q`, p.pick(modes...), p.pick("skip", "skip", "deny", "empty"), p.pick("open", "open", "closed", "local"))
	if p.IntN(3) == 0 {
		text += `, "group": "g"`
	}
	limits := "{" + p.limit() + "}"
	if p.IntN(3) == 0 {
		limits += ", {" + p.limit() + "}"
	}
	return "{" + text + `, "limits": [` + limits + "]}"
}

// text returns a policy that may be invalid.
func (p policyMaker) text() string {
	var rules []string
	for i := range 1 + p.IntN(12) {
		rules = append(rules, p.rule(fmt.Sprintf("r%d", i)))
	}
	text := `"rules": [` + strings.Join(rules, ",\n") + "]"
	if p.IntN(3) == 0 {
		text += `, "selector": {"pathPrefix": "/v1"}`
	}
	if p.IntN(3) == 0 {
		text += `, "fallback_limit": {"limit_keys": ["tenant"], "limits": [{` + p.limit() + "}]}"
	}
	return "{" + text + "}"
}

// matcher returns a valid policy with overrides.
func (p policyMaker) matcher(t testing.TB) *policy.Matcher {
	t.Helper()
	for range 1000 {
		m, err := policy.Load([]byte(p.text()), policy.Options{HashKey: []byte("k"), Now: p.now})
		if err != nil {
			continue
		}
		var overrides []policy.Override
		for len(overrides) < 4 && p.IntN(3) > 0 {
			o := p.override(m)
			o.ID = fmt.Sprint("o", len(overrides))
			if next, err := m.WithOverrides(append(overrides, o), p.now); err == nil {
				m, overrides = next, append(overrides, o)
			}
		}
		return m
	}
	t.Fatal("no policy is right")
	return nil
}

// override returns an override that may be invalid.
func (p policyMaker) override(m *policy.Matcher) policy.Override {
	o := policy.Override{Action: policy.Action(p.pick("block", "block", "allow", "allow", "limit", "limit", "limit", "shadow", "break_glass")), Reason: "r", Author: "a"}
	o.ExpiresAt = p.now.Add(100 * 365 * 24 * time.Hour)
	if p.IntN(3) == 0 {
		o.ExpiresAt = p.now.Add(time.Duration(1+p.IntN(60e6)) * time.Microsecond)
	}
	if p.IntN(8) > 0 {
		o.Match = []byte(p.match())
	}
	if matches, _ := m.Match(nil, p.request().Attributes, 0, bucket.At(p.now)); len(matches) > 0 && p.IntN(3) == 0 {
		o.Match, o.Key = nil, matches[p.IntN(len(matches))].Key
	}
	rule := m.Rules()[p.IntN(len(m.Rules()))]
	if o.Action == policy.ActionLimit {
		o.Limits = []byte("[{" + p.limit() + "}]")
	}
	if o.Key == "" && (o.Action == policy.ActionLimit || o.Action == policy.ActionAllow && p.IntN(2) == 0) {
		o.Rules = []string{rule.Name}
	}
	return o
}

func (p policyMaker) request() mete.Request {
	attrs := mete.Attrs{}
	for _, f := range facts {
		if p.IntN(5) > 0 {
			attrs[f.name] = p.pick(f.values...)
		}
	}
	req := mete.Request{Attributes: attrs}
	if p.IntN(5) == 0 {
		req.Cost = mete.TokensOf(bucket.Tokens(1 + p.IntN(4000)))
	}
	if p.IntN(8) == 0 {
		req.MaxWait = time.Duration(p.IntN(10e6)) * time.Microsecond
	}
	return req
}

// charges returns random charges of a request.
func (p policyMaker) charges(t testing.TB) (own []mete.Charge) {
	for p.IntN(3) == 0 {
		own = append(own, mete.Charge{Key: p.pick("z1", "a2"), Limit: limit(t, 3, "1/1s"), Cost: mete.TokensOf(bucket.Tokens(1 + p.IntN(2000)))})
	}
	return own
}
