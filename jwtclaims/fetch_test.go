// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/metehq/mete/jwtclaims"
)

// Keys in a token's header are ignored, and neither its URLs nor URLs in the key set are fetched.
func TestAttack_KeysThatTokensBring(t *testing.T) {
	attacker := newEdKey()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Write([]byte(keySet(jwk("ed", attacker))))
	}))
	defer server.Close()
	certificate := x509.Certificate{SerialNumber: big.NewInt(1)}
	der := must(x509.CreateCertificate(rand.Reader, &certificate, &certificate, attacker.Public(), attacker))
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey()), with(jwk("rsa", rsaKey()), "x5u", server.URL)))})
	for what, header := range map[string]map[string]any{
		"a key":                    {"jwk": jwk("ed", attacker)},
		"the address of keys":      {"jku": server.URL},
		"the address of its chain": {"x5u": server.URL},
		"a chain":                  {"x5c": []string{base64.StdEncoding.EncodeToString(der)}},
		"all of them":              {"jwk": jwk("ed", attacker), "jku": server.URL, "x5u": server.URL, "x5c": []string{base64.StdEncoding.EncodeToString(der)}},
	} {
		for kid, want := range map[string]jwtclaims.Reason{"": jwtclaims.ReasonBadSignature, "ed": jwtclaims.ReasonBadSignature, "mine": jwtclaims.ReasonUnknownKey, server.URL: jwtclaims.ReasonUnknownKey} {
			token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims(map[string]any{"jti": what}))
			for name, value := range header {
				token.Header[name] = value
			}
			if kid != "" {
				token.Header["kid"] = kid
			}
			before := refusals(v)[want]
			if got := claim(v, must(token.SignedString(attacker)), "sub"); got != missing || refusals(v)[want] != before+1 {
				t.Errorf("a token that brings %s, of key %q: claim %q, refused %v, want %s", what, kid, got, refusals(v), want)
			}
		}
	}
	if got := claim(v, good(t), "sub"); got != "u1" || asked.Load() != 0 {
		t.Errorf("a good token: claim %q; %d requests to addresses that tokens and keys name", got, asked.Load())
	}
}

// Numbers are as they are written. A list of texts is one text, and other values are no attribute.
func TestAttribute_ClaimsOfAllTypes(t *testing.T) {
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey())))})
	exp := string(must(json.Marshal(claims(nil)["exp"])))
	for text, want := range map[string]string{
		`1000`: "1000", `1e3`: "1e3", `1000.0`: "1000.0", `-0`: "-0", `12345678901234567890123`: "12345678901234567890123",
		`true`: "true", `"true"`: "true", `null`: missing, `[]`: missing, `["a"]`: "a", `["a","b c"]`: missing, `["b",1.0,true]`: "b 1.0 true", `["a",["b"]]`: missing, `["a",""]`: missing, `{"a":"b"}`: missing, `""`: "", `"\u0000\n"`: "\x00\n",
	} {
		token := raw(`{"alg":"EdDSA","kid":"ed"}`, `{"exp":`+exp+`,"plan":`+text+`}`)
		if got := claim(v, token, "plan"); got != want {
			t.Errorf("plan %s: got %q, want %q", text, got, want)
		}
	}
	for _, payload := range []string{`{"exp":` + exp + `,"plan":"a","plan":"b"}`, `{"exp":` + exp + `,"plan":"a","pl\u0061n":"b"}`} {
		if got := claim(v, raw(`{"alg":"EdDSA","kid":"ed"}`, payload), "plan"); got != missing {
			t.Errorf("%s: got %q, want none", payload, got)
		}
	}
}
