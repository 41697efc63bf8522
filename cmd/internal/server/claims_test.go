// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
)

// An issuer signs tokens.
type issuer struct{ private ed25519.PrivateKey }

func newIssuer(t *testing.T) issuer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{private}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keySet is its public key.
func (i issuer) keySet() string {
	return fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":%q}]}`, encode(i.private.Public().(ed25519.PublicKey)))
}

// token is one of a plan, good for an hour.
func (i issuer) token(plan string) string {
	text := encode([]byte(`{"alg":"EdDSA","kid":"k"}`)) + "." + encode(fmt.Appendf(nil, `{"plan":%q,"sub":%q,"exp":%d}`, plan, plan, time.Now().Add(time.Hour).Unix()))
	return text + "." + encode(ed25519.Sign(i.private, []byte(text)))
}

// plans is a policy with two tiers by claim.
const plans = `rules:
  - name: pro
    limit_keys: ["jwt:sub"]
    match: { "jwt:plan": pro }
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: 3 }
  - name: everyone
    limit_keys: []
    group: everyone
    match: { "jwt:plan": { not: pro } }
    on_missing: empty
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: 1 }
`

// asks sends n requests with a token and returns how many were allowed.
func (r *running) asks(path, token string, n int) (allowed int) {
	r.t.Helper()
	for range n {
		req, err := http.NewRequest("GET", r.main+path, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("X-Forwarded-Method", "GET")
		req.Header.Set("X-Forwarded-Uri", "/")
		req.Header.Set("X-Forwarded-Host", "example.com")
		req.Header.Set("X-Forwarded-For", "192.0.2.1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		if status, _ := read(r.t, resp); status == http.StatusOK {
			allowed++
		}
	}
	return allowed
}

// The gateway and /v1/decision use the plan that the issuer signed.
func TestClaims_AreVerified(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") }))
	defer upstream.Close()
	issuer, forger := newIssuer(t), newIssuer(t)
	keys := filepath.Join(t.TempDir(), "jwks.json")
	write(t, keys, issuer.keySet())
	for path, front := range map[string]func(*config.Config){
		"/": func(c *config.Config) { c.Upstream = mustURL(upstream.URL) },
		"/v1/decision": func(c *config.Config) {
			c.DecisionProfile, c.TrustedProxies = "traefik", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		},
	} {
		c := testConfig()
		c.Policy, c.JWT.Keys = policyFile(t, plans), keys
		front(&c)
		s := start(t, c)
		if got := s.asks(path, issuer.token("pro"), 4); got != 3 {
			t.Errorf("%s: %d of 4 with a good token, want 3", path, got)
		}
		if got := s.asks(path, forger.token("pro"), 4); got != 1 {
			t.Errorf("%s: %d of 4 with a forged token, want 1 as without", path, got)
		}
		s.hasMetrics("mete_jwt_verified_total 1", "mete_jwt_keys 1", "mete_jwt_key_changes_total 1",
			`mete_jwt_refused_total{reason="expired"} 0`, "mete_jwt_key_reads_failed_total 0")
		if text := s.metricsText(); strings.Contains(text, `mete_jwt_refused_total{reason="signature"} 0`) {
			t.Errorf("%s: the forged token was not counted:\n%s", path, text)
		}
		if s.log.Count("bearer tokens verified") != 1 || s.log.Count("algorithms=RS256,PS256,ES256,EdDSA issuer=any audience=any") != 1 {
			t.Errorf("%s: the log does not say what claims are worth:\n%s", path, s.log)
		}
		if s.log.Count("eyJ") != 0 {
			t.Errorf("%s: a token is in the log:\n%s", path, s.log)
		}
	}
}

// API clients send claims themselves, and tokens do not matter.
func TestClaims_OfTheAPIAreTheCallers(t *testing.T) {
	t.Parallel()
	issuer := newIssuer(t)
	c := testConfig()
	c.Policy, c.JWT.Keys = policyFile(t, plans), filepath.Join(t.TempDir(), "jwks.json")
	write(t, c.JWT.Keys, issuer.keySet())
	s := start(t, c)
	allowed := 0
	for range 4 {
		if status, _ := post(t, s.main+"/v1/take?status=429", strings.NewReader(`{"attributes":{"jwt:plan":"pro","jwt:sub":"u1"}}`)); status == 200 {
			allowed++
		}
	}
	if allowed != 3 {
		t.Errorf("%d of 4 were allowed, want 3 as for pro", allowed)
	}
	if s.log.Count("jwt.keys has no effect") != 1 {
		t.Errorf("the log does not say that the key set is of no use:\n%s", s.log)
	}
}

func TestClaims_KeySetIsMissing(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.JWT.Keys = filepath.Join(t.TempDir(), "jwks.json")
	if _, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "jwks.json") {
		t.Errorf("a file that is not there: %v, want an error with its name", err)
	}
	down := httptest.NewServer(nil)
	down.Close()
	c.JWT.Keys, c.Policy, c.Upstream = down.URL, policyFile(t, plans), mustURL(down.URL)
	s := start(t, c)
	for _, want := range []string{"cannot read key set; rejecting all tokens", "key set loaded over plain HTTP"} {
		if s.log.Count(want) != 1 {
			t.Errorf("a URL that is down: no %q in the log:\n%s", want, s.log)
		}
	}
	s.hasMetrics("mete_jwt_keys 0")
}
