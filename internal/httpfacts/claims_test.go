// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// token is an unsigned token with that payload.
func token(payload string) string {
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestUnverifiedClaims(t *testing.T) {
	const payload = `{"sub":"u1","plan":"pro","n":1.50e3,"big":12345678901234567890,"yes":true,"no":false,"null":null,` +
		`"list":["a",1.0,true],"one":["a"],"none":[],"spaced":["not admin"],"gap":["a",""],"nested":["a",["b"]],"nil":["a",null],"object":{"plan":"x"},"":"unnamed","esc\u0061ped":"\u00e9"}`
	source := newSource(t, httpfacts.Config{UnverifiedClaims: true})
	for _, scheme := range []string{"Bearer ", "bearer  ", "BEARER "} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", scheme+token(payload))
		for name, want := range map[string]string{
			"jwt:sub": "u1", "jwt:plan": "pro", "jwt:n": "1.50e3", "jwt:big": "12345678901234567890", "jwt:yes": "true", "jwt:no": "false",
			"jwt:null": missing, "jwt:list": "a 1.0 true", "jwt:one": "a", "jwt:none": missing, "jwt:spaced": missing, "jwt:gap": missing, "jwt:nested": missing, "jwt:nil": missing, "jwt:object": missing, "jwt:absent": missing, "jwt:escaped": "é",
		} {
			got, ok := lookup(t, source, r, name)
			if !ok {
				got += missing
			}
			if got != want {
				t.Errorf("scheme %q: Lookup(%s) = %q, want %q", scheme, name, got, want)
			}
		}
	}
}

func TestUnverifiedClaims_RefusesTokens(t *testing.T) {
	good := token(`{"sub":"u1"}`)
	many := `{"sub":"u1"`
	for i := range 128 {
		many += fmt.Sprintf(`,"c%d":1`, i)
	}
	for what, value := range map[string]string{
		"no token":          "Bearer",
		"another scheme":    "Basic " + good,
		"no scheme":         good,
		"two parts":         "Bearer " + strings.TrimSuffix(good, ".c2ln"),
		"five parts":        "Bearer " + good + ".x.y",
		"padding":           "Bearer e30.eyJzdWIiOiJ1MSJ9=.x",
		"another alphabet":  "Bearer e30." + base64.RawStdEncoding.EncodeToString([]byte(`{"sub":"u1","x":"???>>>"}`)) + ".x",
		"a duplicate":       "Bearer " + token(`{"sub":"u1","sub":"u2"}`),
		"a duplicate, null": "Bearer " + token(`{"sub":"u1","sub":null}`),
		"escaped duplicate": "Bearer " + token(`{"sub":"u1","s\u0075b":"u2"}`),
		"an array":          "Bearer " + token(`["sub","u1"]`),
		"a string":          "Bearer " + token(`"sub"`),
		"nothing":           "Bearer " + token(``),
		"a line end within": "Bearer e30.eyJzdWIi\nOiJ1MSJ9.x",
		"cut off":           "Bearer " + token(`{"sub":"u1"`),
		"junk behind":       "Bearer " + token(`{"sub":"u1"}{}`),
		"bad UTF-8":         "Bearer " + token("{\"sub\":\"u1\",\"x\":\"\xff\"}"),
		"too deep":          "Bearer " + token(`{"sub":"u1","x":`+strings.Repeat("[", 16)+strings.Repeat("]", 16)+`}`),
		"too many claims":   "Bearer " + token(many+"}"),
		"too long":          "Bearer " + token(`{"sub":"u1","x":"`+strings.Repeat("x", 8<<10)+`"}`),
		"bottomless":        "Bearer " + token(strings.Repeat("[", 6000)),
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", value)
		if got, ok := lookup(t, newSource(t, httpfacts.Config{UnverifiedClaims: true}), r, "jwt:sub"); ok {
			t.Errorf("%s: Authorization %.100q: got %q, want no claims", what, value, got)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header["Authorization"] = []string{"Bearer " + good, "Bearer " + good}
	if got, ok := lookup(t, newSource(t, httpfacts.Config{UnverifiedClaims: true}), r, "jwt:sub"); ok {
		t.Errorf("two Authorization headers: got %q, want no claims", got)
	}
}

// Tokens at the bounds are read.
func TestUnverifiedClaims_AtTheBounds(t *testing.T) {
	most := `{"sub":"u1"`
	for i := range 127 {
		most += fmt.Sprintf(`,"c%d":1`, i)
	}
	for what, payload := range map[string]string{
		"depth":            `{"sub":"u1","x":` + strings.Repeat("[", 15) + strings.Repeat("]", 15) + `}`,
		"claims":           most + "}",
		"brackets in text": `{"x":"\"` + strings.Repeat("[", 100) + `","sub":"u1"}`,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token(payload))
		if got, ok := lookup(t, newSource(t, httpfacts.Config{UnverifiedClaims: true}), r, "jwt:sub"); got != "u1" {
			t.Errorf("%s: got %q, %v, want u1", what, got, ok)
		}
	}
}

// A program that verifies its tokens is not gone around.
func TestUnverifiedClaims_OnlyByChoice(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token(`{"sub":"forged"}`))
	none := func(*http.Request, policy.Attribute) (string, bool) { return "", false }
	for _, config := range []httpfacts.Config{{}, {Extra: none}} {
		if got, ok := lookup(t, newSource(t, config), r, "jwt:sub"); ok {
			t.Errorf("got %q of a token that nobody verified", got)
		}
	}
}
