// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/policy"
)

func TestAttribute_EveryAlgorithm(t *testing.T) {
	path := file(t, keySet(jwk("rsa", rsaKey()), jwk("p256", p256Key()), jwk("p384", p384Key()), jwk("p521", p521Key()),
		jwk("ed", edKey()), jwk("oct", secret())))
	for _, tt := range []struct {
		algorithm, kid string
		key            any
		byDefault      bool
	}{
		{"RS256", "rsa", rsaKey(), true}, {"RS384", "rsa", rsaKey(), false}, {"RS512", "rsa", rsaKey(), false},
		{"PS256", "rsa", rsaKey(), true}, {"PS384", "rsa", rsaKey(), false}, {"PS512", "rsa", rsaKey(), false},
		{"ES256", "p256", p256Key(), true}, {"ES384", "p384", p384Key(), false}, {"ES512", "p521", p521Key(), false},
		{"EdDSA", "ed", edKey(), true},
		{"HS256", "oct", secret(), false}, {"HS384", "oct", secret(), false}, {"HS512", "oct", secret(), false},
	} {
		for _, kid := range []string{tt.kid, ""} {
			token := sign(t, tt.algorithm, kid, tt.key, claims(nil))
			pinned := start(t, jwtclaims.Config{KeySet: path, Algorithms: []string{tt.algorithm}})
			if got := claim(pinned, token, "plan"); got != "pro" {
				t.Errorf("%s, kid %q, pinned: got %q, want pro; refused %v", tt.algorithm, kid, got, refusals(pinned))
			}
			want := missing
			if tt.byDefault {
				want = "pro"
			}
			usual := start(t, jwtclaims.Config{KeySet: path})
			if got := claim(usual, token, "plan"); got != want {
				t.Errorf("%s, kid %q, by default: got %q, want %q; refused %v", tt.algorithm, kid, got, want, refusals(usual))
			}
		}
	}
}

// Verified claims become the same attributes as unverified ones: see package httpfacts.
func TestAttribute_Values(t *testing.T) {
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
	token := raw(`{"alg":"EdDSA","kid":"ed"}`, `{"exp":253402300799,"sub":"u1","n":1.50e3,"big":12345678901234567890,"yes":true,"no":false,`+
		`"null":null,"list":["a","b"],"realm_access":{"role":"admin"},"realm_access.role":"literal","":"unnamed"}`)
	for name, want := range map[string]string{
		"sub": "u1", "n": "1.50e3", "big": "12345678901234567890", "yes": "true", "no": "false", "exp": "253402300799",
		"null": missing, "list": "a b", "realm_access": missing, "absent": missing,
		"realm_access.role": "literal", // not the nested claim
	} {
		if got := claim(v, token, name); got != want {
			t.Errorf("claim %q: got %q, want %q", name, got, want)
		}
	}
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER  "} {
		if got, _ := v.Attribute(request(scheme+token), policy.Attribute{Source: policy.SourceJWT, Name: "sub"}); got != "u1" {
			t.Errorf("scheme %q: got %q, want u1", scheme, got)
		}
	}
	if got, ok := v.Attribute(request("Bearer "+token), policy.Attribute{Source: policy.SourceHeader, Name: "sub"}); ok {
		t.Errorf("header:sub: got %q, want nothing: it is no claim", got)
	}
	for _, authorization := range [][]string{nil, {""}, {"Basic dTpw"}, {"Bearer"}, {"Bearer "}} {
		if got, ok := v.Attribute(request(authorization...), policy.Attribute{Source: policy.SourceJWT, Name: "sub"}); ok {
			t.Errorf("Authorization %q: got %q, want nothing", authorization, got)
		}
	}
	if got := refusals(v); len(got) != 0 {
		t.Errorf("refused %v, want none: a request without a token is not a bad one", got)
	}
}

func TestAttribute_Times(t *testing.T) {
	path := file(t, keySet(jwk("ed", edKey())))
	now := time.Now().Unix()
	for _, tt := range []struct {
		what    string
		changes map[string]any
		leeway  time.Duration
		want    jwtclaims.Reason // "" is a good token
	}{
		{"in time", nil, 0, ""},
		{"expired", map[string]any{"exp": now - 1}, 0, jwtclaims.ReasonExpired},
		{"expired within the leeway", map[string]any{"exp": now - 20}, time.Minute, ""},
		{"expired beyond the leeway", map[string]any{"exp": now - 120}, time.Minute, jwtclaims.ReasonExpired},
		{"a long time ago", map[string]any{"exp": 0}, 0, jwtclaims.ReasonExpired},
		{"not yet valid", map[string]any{"nbf": now + 60}, 0, jwtclaims.ReasonNotYetValid},
		{"not yet valid, within the leeway", map[string]any{"nbf": now + 20}, time.Minute, ""},
		{"valid since", map[string]any{"nbf": now - 1}, 0, ""},
		{"without end", map[string]any{"exp": nil}, 0, jwtclaims.ReasonNoExpiry},
		{"end null", map[string]any{"exp": jwt.ClaimStrings(nil)}, 0, jwtclaims.ReasonNoExpiry},
		{"end negative", map[string]any{"exp": -1}, 0, jwtclaims.ReasonNoExpiry},
		{"end beyond time", map[string]any{"exp": 1e300}, 0, jwtclaims.ReasonNoExpiry},
		{"end in words", map[string]any{"exp": "tomorrow"}, 0, jwtclaims.ReasonNoExpiry},
		{"end as text", map[string]any{"exp": "253402300799"}, 0, jwtclaims.ReasonMalformed},
		{"end true", map[string]any{"exp": true}, 0, jwtclaims.ReasonNoExpiry},
		{"begin beyond time", map[string]any{"nbf": 1e300}, 0, jwtclaims.ReasonMalformed},
		{"begin as text", map[string]any{"nbf": "0"}, 0, jwtclaims.ReasonMalformed},
		{"end with a fraction", map[string]any{"exp": float64(now) + 60.5}, 0, ""},
	} {
		v := start(t, jwtclaims.Config{KeySet: path, Leeway: tt.leeway})
		checkVerdict(t, v, tt.what, sign(t, "EdDSA", "ed", edKey(), claims(tt.changes)), tt.want)
	}
}

func TestAttribute_IssuerAndAudience(t *testing.T) {
	config := jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey()))), Issuer: "https://id.example.com", Audience: []string{"api", "search"}}
	for _, tt := range []struct {
		iss, aud any
		want     jwtclaims.Reason
	}{
		{"https://id.example.com", "api", ""},
		{"https://id.example.com", []string{"other", "search"}, ""},
		{"https://id.example.com/", "api", jwtclaims.ReasonBadIssuer},
		{nil, "api", jwtclaims.ReasonBadIssuer},
		{"", "api", jwtclaims.ReasonBadIssuer},
		{[]string{"https://id.example.com"}, "api", jwtclaims.ReasonMalformed},
		{"https://id.example.com", "ap", jwtclaims.ReasonBadAudience},
		{"https://id.example.com", nil, jwtclaims.ReasonBadAudience},
		{"https://id.example.com", "", jwtclaims.ReasonBadAudience},
		{"https://id.example.com", []string{}, jwtclaims.ReasonBadAudience},
		{"https://id.example.com", map[string]any{"api": 1}, jwtclaims.ReasonBadAudience},
		{nil, nil, jwtclaims.ReasonBadIssuer},
	} {
		v := start(t, config)
		token := sign(t, "EdDSA", "ed", edKey(), claims(map[string]any{"iss": tt.iss, "aud": tt.aud}))
		checkVerdict(t, v, "iss and aud", token, tt.want)
		if t.Failed() {
			t.Fatalf("iss %v, aud %v", tt.iss, tt.aud)
		}
	}
}

// checkVerdict asks about a token and compares why it was refused.
func checkVerdict(t *testing.T, v *jwtclaims.Verifier, what, token string, want jwtclaims.Reason) {
	t.Helper()
	got, wantClaim, wantCount := claim(v, token, "plan"), "pro", map[jwtclaims.Reason]int64{}
	if want != "" {
		wantClaim, wantCount = missing, map[jwtclaims.Reason]int64{want: 1}
	}
	if got != wantClaim || !maps.Equal(refusals(v), wantCount) {
		t.Errorf("%s: token %.120s: got %q, refused %v; want %q, refused %v", what, token, got, refusals(v), wantClaim, wantCount)
	}
}

// A remembered token ends with its exp, not a minute later.
func TestAttribute_EndsOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey()))), Leeway: time.Second})
		token := sign(t, "EdDSA", "ed", edKey(), claims(map[string]any{"exp": time.Now().Add(90 * time.Second).Unix()}))
		for _, tt := range []struct {
			wait             time.Duration
			want             string
			verified, cached int64
		}{
			{0, "pro", 1, 0},
			{59 * time.Second, "pro", 1, 1},
			{time.Second, "pro", 2, 1}, // after a minute it is looked at again
			{30 * time.Second, "pro", 2, 2},
			{time.Second, missing, 2, 2}, // exp and the leeway have passed, the minute has not
		} {
			time.Sleep(tt.wait)
			got, s := claim(v, token, "plan"), v.Stats()
			if got != tt.want || s.Verified != tt.verified || s.Cached != tt.cached {
				t.Errorf("after %v more: got %q, verified %d, cached %d; want %q, %d, %d", tt.wait, got, s.Verified, s.Cached, tt.want, tt.verified, tt.cached)
			}
		}
	})
}
