// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// MaxTokenBytes bounds a token whose claims are read without being verified.
const MaxTokenBytes = 8 << 10

// The bounds of claims. What is beyond any of them, or malformed in any way, is
// no claims.
const (
	maxClaims     = 128 // at the top level
	maxClaimDepth = 16  // of arrays and objects in each other
)

// unverifiedClaims returns the claims of r's bearer token. NOTHING about the
// token is verified: neither its signature nor its algorithm nor its times.
func unverifiedClaims(r *http.Request) map[string]string {
	token, several := BearerToken(r)
	if several || len(token) > MaxTokenBytes {
		return nil
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 { // five would be an encrypted one
		return nil
	}
	claims, _ := ReadClaims(parts[1])
	return claims
}

// BearerToken returns the token in r's Authorization header, and "" where there
// is none. Where there are several such headers it returns none of them: who
// verified the request may have read another one.
func BearerToken(r *http.Request) (token string, several bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", len(values) > 1
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.Trim(token, " "), false
}

// ReadClaims reads one part of a token, a JSON object in base64url. It is how
// claims become attributes, verified or not: those at the top level that are
// strings, numbers (as they are written) and booleans have a value; others are
// missing. A part that names a claim twice is refused: who verified it may have
// read the other one.
func ReadClaims(part string) (claims map[string]string, ok bool) {
	if strings.ContainsAny(part, "\r\n") { // which the decoder would skip
		return nil, false
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || !utf8.Valid(payload) || nesting(payload) > maxClaimDepth || !json.Valid(payload) {
		return nil, false
	}
	return decodeClaims(payload)
}

// decodeClaims reads one JSON object of claims.
func decodeClaims(payload []byte) (claims map[string]string, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	claims = map[string]string{}
	names := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		name, isName := token.(string)
		if err != nil || !isName || names[name] || len(names) == maxClaims {
			return nil, false
		}
		names[name] = true
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, false
		}
		switch v := value.(type) {
		case string:
			claims[name] = v
		case json.Number:
			claims[name] = v.String()
		case bool:
			claims[name] = "false"
			if v {
				claims[name] = "true"
			}
		}
	}
	return claims, true
}

// nesting returns how deep the arrays and objects of a JSON text are nested. It
// is what protects the decoder, and so does not need the text to be valid.
func nesting(text []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
