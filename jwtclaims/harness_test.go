// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/jwtclaims"
	"github.com/metehq/mete/policy"
)

// The issuer's keys. They are made once: RSA keys take their time.
var (
	rsaKey      = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSAKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	p256Key     = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384Key     = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	p521Key     = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)) })
	edKey       = sync.OnceValue(func() ed25519.PrivateKey { return newEdKey() })
	secret      = sync.OnceValue(func() []byte { return bytes.Repeat([]byte("secret!!"), 8) })
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newEdKey() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return must(key, err)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk is the public part of a key, in the words of RFC 7518, written without the
// code under test.
func jwk(kid string, key any) map[string]string {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return map[string]string{"kty": "RSA", "kid": kid, "n": encode(k.N.Bytes()), "e": encode(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PrivateKey:
		point := must(k.PublicKey.Bytes())[1:] // after the form
		half := len(point) / 2
		return map[string]string{"kty": "EC", "kid": kid, "crv": k.Params().Name, "x": encode(point[:half]), "y": encode(point[half:])}
	case ed25519.PrivateKey:
		return map[string]string{"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": encode(k.Public().(ed25519.PublicKey))}
	case []byte:
		return map[string]string{"kty": "oct", "kid": kid, "k": encode(k)}
	}
	panic("no such key")
}

// with returns a key with one more field.
func with(key map[string]string, name, value string) map[string]string {
	key[name] = value
	return key
}

func keySet(keys ...map[string]string) string {
	return string(must(json.Marshal(map[string]any{"keys": append([]map[string]string{}, keys...)})))
}

// claims returns the claims of a valid token with the given changes; nil removes a claim.
func claims(changes map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{"sub": "u1", "plan": "pro", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// sign returns a token. A kid of "" is none.
func sign(t testing.TB, algorithm, kid string, key any, c jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.GetSigningMethod(algorithm), c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// good is a good token, by the Ed25519 key that is called "ed".
func good(t testing.TB) string { return sign(t, "EdDSA", "ed", edKey(), claims(nil)) }

// raw is a token of these parts, signed with the Ed25519 key.
func raw(header, payload string) string {
	text := encode([]byte(header)) + "." + encode([]byte(payload))
	return text + "." + encode(must(edKey().Sign(nil, []byte(text), crypto.Hash(0))))
}

// file writes a key set to a new file.
func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	write(t, path, text)
	return path
}

func write(t testing.TB, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// start makes a verifier that ends with the test.
func start(t testing.TB, c jwtclaims.Config) *jwtclaims.Verifier {
	t.Helper()
	v, err := jwtclaims.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func request(authorization ...string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["Authorization"] = authorization
	return r
}

// missing stands for an attribute that is not there.
const missing = "(missing)"

// claim returns a verifier's claim for a request with the token.
func claim(v *jwtclaims.Verifier, token, name string) string {
	value, ok := v.Attribute(request("Bearer "+token), policy.Attribute{Source: policy.SourceJWT, Name: name})
	if !ok {
		return missing
	}
	return value
}

// refusals are the reasons that were counted, and how often.
func refusals(v *jwtclaims.Verifier) map[jwtclaims.Reason]int64 {
	counted := map[jwtclaims.Reason]int64{}
	for reason, n := range v.Stats().Rejected {
		if n > 0 {
			counted[reason] = n
		}
	}
	return counted
}

// sum adds up the numbers that stand behind a text in a log.
func sum(log *testkit.Log, before string) int {
	total := 0
	for _, after := range strings.Split(log.String(), before)[1:] {
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		n, _ := strconv.Atoi(after[:digits])
		total += n
	}
	return total
}
