// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

func TestFacts_Client(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr, r.Header = "192.0.2.1:80", http.Header{"X-Api-Key": {"k1"}}
	facts := newSource(t, httpfacts.Config{}).Facts(r)
	defer facts.Release()
	keyed := &policy.Rule{LimitKeys: []policy.Attribute{attribute(t, "header:x-api-key"), attribute(t, "query:tenant")}}
	limit := &policy.Limit{Name: "free"}
	for _, tt := range []struct {
		decision mete.Decision
		want     []string
	}{
		{mete.Decision{}, []string{"192.0.2.1", ""}},
		{mete.Decision{}.WithLimits(mete.Status{Rule: &policy.Rule{}}), []string{"192.0.2.1", ""}},
		{mete.Decision{}.WithLimits(mete.Status{Rule: keyed, Limit: limit}), []string{"192.0.2.1", "", "free", "k1", ""}},
	} {
		if got := facts.Client(&tt.decision); !slices.Equal(got, tt.want) {
			t.Errorf("Client(%+v): got %q, want %q", tt.decision, got, tt.want)
		}
	}
}

// The subject of the token distinguishes clients with one address and one bucket. Without tokens in the policy,
// the end of the credential does.
func TestFacts_Client_Credential(t *testing.T) {
	alike := strings.Repeat("a", 300)
	for _, tt := range []struct {
		what          string
		config        httpfacts.Config
		authorization string
		want          string
		reads         string // attributes of the active policy
	}{
		{"none", httpfacts.Config{}, "", "", "jwt:plan"},
		{"unverified claims", httpfacts.Config{UnverifiedClaims: true}, "Bearer " + token(`{"sub":"u1","iat":1}`), "u1", "jwt:plan"},
		{"the same subject with another token", httpfacts.Config{UnverifiedClaims: true}, "Bearer " + token(`{"sub":"u1","iat":2}`), "u1", "jwt:plan"},
		{"verified claims", httpfacts.Config{Extra: func(_ *http.Request, a policy.Attribute) (string, bool) {
			return "u2", a.String() == "jwt:sub"
		}}, "Bearer x", "u2", "jwt:plan"},
		{"verified claims that no rule reads", httpfacts.Config{Extra: func(*http.Request, policy.Attribute) (string, bool) {
			t.Error("the program was asked")
			return "u2", true
		}}, "Bearer x", "Bearer x", "path"},
		{"nothing reads tokens", httpfacts.Config{}, "Bearer x", "Bearer x", "jwt:plan"},
		{"long ones that begin alike", httpfacts.Config{}, "Bearer " + alike + "signature", alike[:256-len("signature")] + "signature", "jwt:plan"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.0.2.1:80"
		if tt.authorization != "" {
			r.Header.Set("Authorization", tt.authorization)
		}
		m, err := policy.Load(fmt.Appendf(nil, `{"rules": [{"name": "a", "limit_keys": [%q], "algorithm_config": {"rps": 1, "burst": 1}}]}`, tt.reads), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		facts := newSource(t, tt.config).Facts(r)
		facts.SetPolicy(m, 0)
		if got := facts.Client(&mete.Decision{}); !slices.Equal(got, []string{"192.0.2.1", tt.want}) {
			t.Errorf("%s: got %q, want %q", tt.what, got, tt.want)
		}
		facts.Release()
	}
}
