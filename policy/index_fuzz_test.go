// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// A chooser makes choices from the input of a fuzzer, and always the first choice after its end.
type chooser struct{ data []byte }

func (c *chooser) below(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func (c *chooser) of(list []string) string { return list[c.below(len(list))] }

// nasty are attributes with values that are easily confused in an index.
var nasty = []struct {
	name     string
	values   []string // of requests
	patterns []string // of rules, as JSON
}{
	{"tenant",
		[]string{"", "a", "ab", "abc", "abcd", "abd", "b", "aa", "a\xff", "A", "*", "a*", "zzz", "ab\x00"},
		[]string{`""`, `"a"`, `"ab"`, `"abc"`, `"a*"`, `"ab*"`, `"abc*"`, `"abcd*"`, `"b*"`, `"aa*"`, `"*"`, `"zz"`, `"z*"`, `"ab\u0000*"`}},
	{"path",
		[]string{"/", "/a", "/a/", "/a/b", "/ab", "/a/b/c", "//", "/b/a", "/b", "/a/b/", "/a//", "*", ""},
		[]string{`"/{x}"`, `"/a/{x}"`, `"/a/{y}"`, `"/{x}/b"`, `"/{x}/{y}"`, `"/a/{rest...}"`, `"/{z...}"`, `"/{x}/{$}"`, `"/a/b/{x}"`, `"/{$}"`, `"/"`, `"/*"`, `"/a"`, `"/a*"`, `"/a/*"`, `"/a/b*"`, `"/a/b"`, `"*"`}},
	{"ip:address",
		[]string{"192.0.2.1", "192.0.2.129", "::ffff:192.0.2.1", "10.0.0.1", "::192.0.2.1", "2001:db8::1", "2001:db8:1::", "fe80::1%eth0", "", "localhost", "0.0.0.0", "::"},
		[]string{`"192.0.2.1"`, `"192.0.2.0/24"`, `"192.0.2.128/25"`, `"192.0.0.0/16"`, `"0.0.0.0/0"`, `"10.0.0.0/8"`, `"::/0"`, `"2001:db8::/32"`, `"2001:db8::/48"`,
			`"2001:db8::1"`, `"::/96"`, `"c000::/2"`, `"fe80::/10"`, `"*"`}},
	{"jwt:plan", []string{"", "pro", "pro+", "1", "true"}, []string{`"pro"`, `"pro*"`, `1`, `true`, `""`, `"*"`}},
	{"host",
		[]string{"a", "a.b", "x.a.b", "y.x.a.b", ".a.b", "b", "xa.b", "a.b.", "a..b", "c"},
		[]string{`"a.b"`, `"*.b"`, `"*.a.b"`, `"*.x.a.b"`, `"x.*"`, `"a*"`, `"*"`, `"c"`}},
	{"jwt:roles",
		[]string{"", "admin", "admin ops", "ops  admin", " admin", "adminx", "ops ab", "a", "*", "true"},
		[]string{`"admin"`, `"ops"`, `"a*"`, `"admin*"`, `"x"`, `"true"`}},
	{"method", []string{"GET", "get", "POST"}, []string{`"GET"`, `"get"`, `"P*"`}},
}

// match is a match with some of them, or a list of alternatives.
func (c *chooser) match() string {
	if c.below(5) == 0 {
		return "[" + c.clauses() + ", " + c.clauses() + "]"
	}
	return c.clauses()
}

func (c *chooser) clauses() string {
	var clauses []string
	for _, a := range nasty {
		if c.below(3) > 0 {
			continue
		}
		pattern := c.of(a.patterns)
		if n := c.below(5); n > 1 {
			list := []string{pattern}
			for range n {
				list = append(list, c.of(a.patterns)) // the same twice, too
			}
			pattern = "[" + strings.Join(list, ", ") + "]"
		}
		if a.name == "jwt:roles" && c.below(4) > 0 {
			pattern = `{"has": ` + pattern + "}"
		}
		if c.below(4) == 0 {
			pattern = `{"not": ` + pattern + "}"
		}
		clauses = append(clauses, strconv.Quote(a.name)+": "+pattern)
	}
	return "{" + strings.Join(clauses, ", ") + "}"
}

func (c *chooser) keys() string {
	return c.of([]string{`[]`, `["tenant"]`, `["ip:address"]`, `["jwt:plan", "tenant"]`, `["ip:address/32"]`})
}

// policyText has so many rules, most of them beside each other, and overrides.
func (c *chooser) policyText() (rules, overrides []string) {
	names := []string{}
	for i := range 1 + c.below(55) {
		name := fmt.Sprintf("r%d", i)
		group := name
		if c.below(4) == 0 {
			group = "g" + strconv.Itoa(c.below(3))
		}
		mode := c.of([]string{"enforce", "enforce", "enforce", "shadow", "off", "30%"})
		names = append(names, name)
		rules = append(rules, fmt.Sprintf(`{"name": %q, "group": %q, "mode": %q, "on_missing": %q, "limit_keys": %s, "match": %s, "algorithm_config": {"rps": 1, "burst": 1}}`,
			name, group, mode, c.of([]string{"skip", "skip", "deny", "empty"}), c.keys(), c.match()))
	}
	for i := range c.below(30) {
		what := `"action": "block"`
		switch c.below(4) {
		case 0:
			what = fmt.Sprintf(`"action": "allow", "rules": [%q, %q]`, c.of(names), c.of(names))
		case 1:
			what = `"action": "` + c.of([]string{"allow", "shadow"}) + `"`
		case 2:
			what = fmt.Sprintf(`"action": "limit", "rules": [%q], "algorithm_config": {"rps": 2, "burst": 2}`, c.of(names))
		}
		overrides = append(overrides, fmt.Sprintf(`{"id": "o%d", %s, "match": %s, "reason": "r", "author": "a", "expires_at": "%s"}`,
			i, what, c.match(), c.of([]string{"2100-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "1970-01-01T00:00:02Z"})))
	}
	return rules, overrides
}

var badPlace = regexp.MustCompile(`^/(rules|overrides)/(\d+)`)

// matcher compiles the valid parts of a policy.
func (c *chooser) matcher(t testing.TB) *policy.Matcher {
	rules, overrides := c.policyText()
	for {
		text := fmt.Sprintf(`{"rules": [%s], "overrides": [%s]}`, strings.Join(rules, ",\n"), strings.Join(overrides, ",\n"))
		m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("k"), Now: time.Unix(1, 0)})
		var es policy.Errors
		if !errors.As(err, &es) {
			return m
		}
		bad := map[string]bool{}
		for _, e := range es {
			bad[badPlace.FindString(e.Path)] = true
		}
		without := func(list []string, name string) []string {
			var kept []string
			for i, text := range list {
				if !bad["/"+name+"/"+strconv.Itoa(i)] {
					kept = append(kept, text)
				}
			}
			return kept
		}
		before := len(rules) + len(overrides)
		rules, overrides = without(rules, "rules"), without(overrides, "overrides")
		switch after := len(rules) + len(overrides); {
		case len(rules) == 0:
			return nil
		case after == before:
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func (c *chooser) request() policy.Map {
	attrs := policy.Map{}
	for _, a := range nasty {
		if i := c.below(len(a.values) + 1); i < len(a.values) {
			attrs[a.name] = a.values[i]
		}
	}
	return attrs
}

// asRules returns a policy with the matches of m's overrides as rules. It shows which overrides match without
// their index. Overrides that match no request are missing.
func asRules(t testing.TB, m *policy.Matcher) *policy.Matcher {
	var rules []string
	for _, o := range m.Overrides() {
		match := string(o.Match)
		if match == "" {
			match = "{}"
		}
		rule := fmt.Sprintf(`{"name": %q, "group": %q, "limit_keys": [], "match": %s, "algorithm_config": {"rps": 1, "burst": 1}}`, o.ID, o.ID, match)
		if _, err := policy.Load([]byte(rule), policy.Options{}); err == nil {
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	naive, err := policy.Load([]byte(`{"rules": [`+strings.Join(rules, ",")+"]}"), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return naive
}

// wholeVerdict returns the decision of the overrides about a whole request: block, allow, and shadow.
func wholeVerdict(m, naive *policy.Matcher, attrs policy.Map, now bucket.Instant) (block, allow string, shadow bool) {
	holds := map[string]bool{}
	if naive != nil {
		for _, c := range naive.Explain(attrs, 0, now).Rules {
			holds[c.Rule.Name] = c.Outcome == policy.OutcomeApplies
		}
	}
	for _, o := range m.Overrides() {
		switch {
		case !holds[o.ID] || bucket.At(o.ExpiresAt) <= now || len(o.Rules) > 0:
		case o.Action == policy.ActionShadow:
			shadow = true
		case o.Action == policy.ActionBlock && block == "":
			block = o.ID
		case o.Action == policy.ActionAllow && allow == "":
			allow = o.ID
		}
	}
	if shadow {
		block = ""
	}
	if block != "" {
		allow = ""
	}
	return block, allow, shadow
}

func idOf(o *policy.Override) string {
	if o == nil {
		return ""
	}
	return o.ID
}

// FuzzMatchAgainstExplain: the index finds what trying all rules does.
func FuzzMatchAgainstExplain(f *testing.F) {
	for seed := range uint64(300) {
		r := rand.New(testseed.PCG(seed, 0))
		data := make([]byte, r.IntN(3000))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &chooser{data}
		m := c.matcher(t)
		if m == nil {
			return
		}
		naive := asRules(t, m)
		for i := range 40 {
			attrs, cost, now := c.request(), bucket.Tokens(c.below(2)), bucket.Instant(1_500_000+c.below(2)*1_000_000)
			e := m.Explain(attrs, cost, now)
			if block, allow, shadow := wholeVerdict(m, naive, attrs, now); idOf(e.Block) != block || idOf(e.Allow) != allow || (e.Shadow != nil) != shadow {
				t.Fatalf("%q at %d: blocked by %q, allowed by %q, in shadow by %q; want %q, %q, %t", attrs, now, idOf(e.Block), idOf(e.Allow), idOf(e.Shadow), block, allow, shadow)
			}
			for range 2 { // one request leaves nothing behind for the next
				matches, verdict := m.Match(nil, attrs, cost, now)
				if !slices.Equal(matches, e.Matches) || verdict != e.Verdict {
					t.Fatalf("%q at %d:\n matches %+v, %+v\nexplained %+v, %+v", attrs, now, matches, verdict, e.Matches, e.Verdict)
				}
			}
			if len(c.data) == 0 && i > 3 {
				return
			}
		}
	})
}
