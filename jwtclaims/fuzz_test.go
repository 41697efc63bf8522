// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"crypto"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/metehq/mete/jwtclaims"
)

// FuzzAttribute looks for accepted tokens with a forged signature: it signs the given header and claims with
// another key.
func FuzzAttribute(f *testing.F) {
	v := start(f, jwtclaims.Config{KeySet: file(f, keySet(jwk("ed", edKey()), jwk("rsa", rsaKey()), jwk("oct", secret()))), Algorithms: everyAlgorithm})
	forger := newEdKey()
	for _, header := range []string{`{"alg":"EdDSA","kid":"ed"}`, `{"alg":"none"}`, `{"alg":"HS256","kid":"oct"}`, `{"alg":"RS256"}`, `{"alg":"EdDSA","crit":[]}`} {
		f.Add(header, payload, "")
		f.Add(header, payload, strings.Repeat("A", 86))
	}
	f.Fuzz(func(t *testing.T, header, payload, signature string) {
		text := encode([]byte(header)) + "." + encode([]byte(payload))
		forged, err := forger.Sign(nil, []byte(text), crypto.Hash(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{signature, encode([]byte(signature)), encode(forged), base64.StdEncoding.EncodeToString(forged)} {
			for _, token := range []string{text + "." + s, header + "." + payload + "." + s, header} {
				if got := claim(v, token, "plan"); got != missing {
					t.Errorf("token %q: got %q, but nobody signed it", token, got)
				}
			}
		}
	})
}
