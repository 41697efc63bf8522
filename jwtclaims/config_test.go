// SPDX-License-Identifier: Apache-2.0

package jwtclaims_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/jwtclaims"
)

func TestNew_RefusesConfigs(t *testing.T) {
	path := file(t, keySet(jwk("ed", edKey())))
	for _, tt := range []struct {
		config jwtclaims.Config
		want   string
	}{
		{jwtclaims.Config{}, "key set is required"},
		{jwtclaims.Config{KeySet: "ftp://id.example.com/jwks"}, "neither an http nor an https URL"},
		{jwtclaims.Config{KeySet: "https:///jwks"}, "not a URL"},
		{jwtclaims.Config{KeySet: "https://user:hunter2@id.example.com/"}, "neither a user nor a fragment"},
		{jwtclaims.Config{KeySet: "https://user:hunter2@id.exa mple.com/"}, "not a URL"},
		{jwtclaims.Config{KeySet: path, Algorithms: []string{"none"}}, `"none" is not a signature`},
		{jwtclaims.Config{KeySet: path, Algorithms: []string{"RS256", " NoNe"}}, "is not a signature"},
		{jwtclaims.Config{KeySet: path, Algorithms: []string{"rs256"}}, `unknown algorithm "rs256"`},
		{jwtclaims.Config{KeySet: path, Algorithms: []string{"ES256K"}}, "unknown algorithm"},
		{jwtclaims.Config{KeySet: path, Algorithms: []string{""}}, "unknown algorithm"},
		{jwtclaims.Config{KeySet: path, Algorithms: []string{"EdDSA", "EdDSA"}}, "duplicate algorithm"},
		{jwtclaims.Config{KeySet: path, Leeway: -1}, "leeway must be"},
		{jwtclaims.Config{KeySet: path, Leeway: time.Hour}, "leeway must be"},
		{jwtclaims.Config{KeySet: path, MaxTokenBytes: -1}, "max token bytes must be"},
		{jwtclaims.Config{KeySet: path, MaxTokenBytes: 1 << 20}, "max token bytes must be"},
		{jwtclaims.Config{KeySet: path, CachedTokens: -1}, "remembered tokens must be"},
		{jwtclaims.Config{KeySet: path, Interval: time.Millisecond}, "interval must be"},
	} {
		v, err := jwtclaims.New(t.Context(), tt.config)
		if err == nil {
			v.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%+v): %v, want an error with %q", tt.config, err, tt.want)
		}
	}
}

func TestNew_RefusesFiles(t *testing.T) {
	short := must(rsa.GenerateKey(rand.Reader, 1024))
	private := with(jwk("ed", edKey()), "d", encode(edKey().Seed()))
	privateRSA := with(jwk("rsa", rsaKey()), "d", encode(rsaKey().D.Bytes()))
	offCurve := with(jwk("p256", p256Key()), "x", encode(make([]byte, 32)))
	var many []map[string]string
	for range 257 {
		many = append(many, map[string]string{"kty": "x"})
	}
	for _, tt := range []struct {
		what, set, want string
	}{
		{"empty", "", "not a key set"},
		{"no JSON", "-----BEGIN PUBLIC KEY-----", "not a key set"},
		{"one key", string(`{"kty":"RSA"}`), "list of keys is missing"},
		{"no keys", keySet(), "no usable key"},
		{"null", `{"keys":null}`, "list of keys is missing"},
		{"a key that is none", `{"keys":[[]]}`, "key 0 is not a JSON Web Key"},
		{"a private key", keySet(private), `key "ed" contains its private part`},
		{"a private RSA key", keySet(jwk("ed", edKey()), privateRSA), `key "rsa" contains its private part`},
		{"a short key", keySet(jwk("rsa", short)), "2048 to 8192 bits, not 1024"},
		{"a point that is not on the curve", keySet(offCurve), "no usable key"},
		{"a curve that nobody pinned", keySet(jwk("p384", p384Key())), "no usable key"},
		{"an unknown kind", keySet(map[string]string{"kty": "x", "kid": "a"}), "no usable key"},
		{"a secret that nobody pinned", keySet(jwk("oct", secret())), "no usable key"},
		{"two of one name", keySet(jwk("ed", edKey()), jwk("ed", newEdKey())), `duplicate key ID for EdDSA: "ed"`},
		{"too many", keySet(many...), "more than 256 keys"},
		{"too large", `{"keys":[],"x":"` + strings.Repeat("x", 1<<20) + `"}`, "larger than 1048576 bytes"},
	} {
		v, err := jwtclaims.New(t.Context(), jwtclaims.Config{KeySet: file(t, tt.set)})
		if err == nil {
			v.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", tt.what, err, tt.want)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "missing.json"), t.TempDir()} {
		if _, err := jwtclaims.New(t.Context(), jwtclaims.Config{KeySet: path}); err == nil {
			t.Errorf("New with %s: no error", path)
		}
	}
	if _, err := jwtclaims.New(t.Context(), jwtclaims.Config{KeySet: "missing.json"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v, want os.ErrNotExist", err)
	}
}

// Two keys may share a name where no algorithm is for both.
func TestNew_OneNameForTwoKinds(t *testing.T) {
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("1", rsaKey()), jwk("1", p256Key())))})
	for algorithm, key := range map[string]any{"RS256": rsaKey(), "ES256": p256Key()} {
		if got := claim(v, sign(t, algorithm, "1", key, claims(nil)), "plan"); got != "pro" {
			t.Errorf("%s: got %q, want pro", algorithm, got)
		}
	}
}

// A secret that is shorter than the hash can be guessed.
func TestNew_ShortSecrets(t *testing.T) {
	_, err := jwtclaims.New(t.Context(), jwtclaims.Config{KeySet: file(t, keySet(jwk("oct", secret()[:31]))), Algorithms: []string{"HS256"}})
	if err == nil || !strings.Contains(err.Error(), "at least 256 bits, not 248") || strings.Contains(err.Error(), encode(secret()[:31])) {
		t.Errorf("a short secret: %v, want why, and no secret", err)
	}
}

// Keys on unsupported curves are ignored, and the log has the reason.
func TestNew_LogsIgnoredKeys(t *testing.T) {
	var log testkit.Log
	v := start(t, jwtclaims.Config{KeySet: file(t, keySet(jwk("ed", edKey()), with(jwk("enc", rsaKey()), "use", "enc"),
		jwk("p384", p384Key()), map[string]string{"kty": "EC", "kid": "k1", "crv": "secp256k1"})), Logger: log.Logger()})
	if got := v.Stats().Keys; got != 1 {
		t.Errorf("%d keys, want 1", got)
	}
	for _, want := range []string{"keys=1", "left_out=3", `its use is \"enc\"`, `key \"p384\"`, `key \"k1\"`} {
		if log.Count(want) == 0 {
			t.Errorf("no %q in the log:\n%s", want, &log)
		}
	}
}
