// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/jwtclaims"
)

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns a token of user u1.
func token(key ed25519.PrivateKey, plan string) string {
	claims := fmt.Sprintf(`{"iss":"https://id.example.com","sub":"u1","plan":%q,"exp":%d}`, plan, time.Now().Add(time.Hour).Unix())
	text := encode([]byte(`{"alg":"EdDSA","kid":"1"}`)) + "." + encode([]byte(claims))
	return text + "." + encode(ed25519.Sign(key, []byte(text)))
}

func TestHandler_PlansAreVerified(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, forger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keySet := filepath.Join(t.TempDir(), "jwks.json")
	text := fmt.Sprintf(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":%q}]}`, encode(public))
	if err := os.WriteFile(keySet, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// In virtual time nothing refills.
	synctest.Test(t, func(t *testing.T) {
		verifier, err := jwtclaims.New(t.Context(), jwtclaims.Config{KeySet: keySet, Issuer: "https://id.example.com"})
		if err != nil {
			t.Fatal(err)
		}
		defer verifier.Close()
		for _, tt := range []struct {
			who, authorization string
			want               int // of 30 requests at once
		}{
			{"pro", "Bearer " + token(private, "pro"), 20},
			{"free", "Bearer " + token(private, "free"), 5},
			{"forged", "Bearer " + token(forger, "pro"), 2},
			{"nobody", "", 2},
		} {
			handler, err := newHandler(verifier)
			if err != nil {
				t.Fatal(err)
			}
			allowed := 0
			for range 30 {
				r := httptest.NewRequest("GET", "/", nil)
				r.Header.Set("Authorization", tt.authorization)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				if w.Code == http.StatusOK {
					allowed++
				}
			}
			if allowed != tt.want {
				t.Errorf("%s: allowed %d of 30 requests, want %d", tt.who, allowed, tt.want)
			}
		}
	})
}
