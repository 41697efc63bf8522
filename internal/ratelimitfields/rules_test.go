// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

// ruleOf returns a rule that names dialects, as in "draft-11 x", and a jitter; ""
// for none.
func ruleOf(t testing.TB, headers, jitter string) *policy.Rule {
	t.Helper()
	r, err := &policy.Rule{Name: "rule"}, error(nil)
	if headers != "" {
		if r.Headers, err = dialect.Parse(strings.Fields(headers)...); err != nil {
			t.Fatal(err)
		}
	}
	if jitter != "" {
		if r.Jitter, err = dialect.ParseJitter(jitter); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// A limit appears in the fields of its rule's dialects, or in the writer's.
func TestHeader_OfTheRule(t *testing.T) {
	const token = bucket.Token
	shown := func(name string, left bucket.Tokens, headers string) mete.Status {
		s := status(newLimit(t, name, "20", "10/1s"), left+token, token)
		s.Rule = ruleOf(t, headers, "")
		return s
	}
	for _, tt := range []struct {
		what     string
		config   []string
		decision *mete.Decision
		want     string
	}{
		{"one that says none is in no field", nil, decision(shown("a", 5*token, ""), shown("hidden", token, "none")), `
Ratelimit: "a";r=5;t=1
Ratelimit-Limit: 20
Ratelimit-Policy: "a";q=20;w=2
Ratelimit-Remaining: 5
Ratelimit-Reset: 1
`},
		{"all say none", nil, decision(shown("a", token, "none"), shown("b", token, "none")), "\n"},
		{"one that says more than the writer", []string{"none"}, decision(shown("a", 0, ""), shown("b", 12*token, "draft-11 x")), `
Ratelimit: "b";r=12;t=2
Ratelimit-Policy: "b";q=20;w=2
X-Ratelimit-Limit: 20
X-Ratelimit-Remaining: 12
X-Ratelimit-Reset: 1700000001
`},
		{"each in its own", []string{"x"}, decision(shown("a", 3*token, "draft-11"), shown("b", 4*token, "legacy"), shown("c", 5*token, "")), `
Ratelimit: "a";r=3;t=1
Ratelimit-Limit: 20
Ratelimit-Policy: "a";q=20;w=2
Ratelimit-Remaining: 4
Ratelimit-Reset: 1
X-Ratelimit-Limit: 20
X-Ratelimit-Remaining: 5
X-Ratelimit-Reset: 1700000002
`},
		{"the decider among those in the fields", []string{"legacy"},
			decision(shown("a", 9*token, ""), shown("decider", 0, "draft-11"), shown("b", 8*token, ""), shown("c", 10*token, "")), `
Ratelimit: "decider";r=0;t=1
Ratelimit-Limit: 20
Ratelimit-Policy: "decider";q=20;w=2
Ratelimit-Remaining: 8
Ratelimit-Reset: 1
`},
		{"denied by one that is in no field", nil, decision(shown("a", 5*token, ""), shown("hidden", -token, "none")), `
Cache-Control: no-store
Ratelimit: "a";r=5;t=1
Ratelimit-Policy: "a";q=20;w=2
Retry-After: 1
X-Ratelimit-Reason: token_bucket_exceeded
`},
		{"denied by several", []string{"legacy"}, decision(shown("a", -token, ""),
			func() mete.Status {
				s := status(newLimit(t, "slow", "5", "1/1m"), 0, token)
				s.Rule = ruleOf(t, "draft-11", "")
				return s
			}()), `
Cache-Control: no-store
Ratelimit: "slow";r=0;t=60
Ratelimit-Limit: 20
Ratelimit-Policy: "slow";q=5;w=300
Ratelimit-Remaining: 0
Ratelimit-Reset: 60
Retry-After: 60
X-Ratelimit-Reason: token_bucket_exceeded
`},
	} {
		config := ratelimitfields.Config{Dialects: tt.config, DisableJitter: true, Now: func() bucket.Instant { return bucket.At(time.Unix(1_700_000_000, 0)) }}
		h := http.Header{}
		newWriter(t, config).Header(h, tt.decision)
		if got := "\n" + fields(h); got != tt.want {
			t.Errorf("%s: got%swant%s", tt.what, got, tt.want)
		}
	}
}

// With IgnoreRules, the writer's settings apply for every rule.
func TestHeader_IgnoresRules(t *testing.T) {
	s := status(newLimit(t, "a", "20", "10/1s"), 0, bucket.Token)
	s.Rule = ruleOf(t, "draft-11 legacy x", "100%")
	h := http.Header{}
	newWriter(t, ratelimitfields.Config{Dialects: []string{"none"}, DisableJitter: true, IgnoreRules: true}).Header(h, decision(s))
	want := "Cache-Control: no-store\nRetry-After: 1\nX-Ratelimit-Reason: token_bucket_exceeded\n"
	if got := fields(h); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
