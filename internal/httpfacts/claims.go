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

// The bounds of a token whose claims are read. A token beyond any of them, or
// malformed in any way, has no claims.
const (
	maxTokenBytes = 8 << 10 // of the whole token
	maxClaims     = 128     // at the top level
	maxClaimDepth = 16      // of arrays and objects in each other
)

// unverifiedClaims returns the claims of r's bearer token. NOTHING about the
// token is verified: neither its signature nor its algorithm nor its times.
//
// Claims at the top level that are strings, numbers (as they are written) and
// booleans have a value; others are missing. A token that names a claim twice
// has no claims (who verified it may have read the other one), and neither has
// a request with several Authorization headers.
func unverifiedClaims(r *http.Request) map[string]string {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > maxTokenBytes {
		return nil
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 { // five would be an encrypted one
		return nil
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	if err != nil || !utf8.Valid(payload) || nesting(payload) > maxClaimDepth {
		return nil
	}
	return decodeClaims(payload)
}

// decodeClaims reads one JSON object of claims, nil if payload is anything else.
func decodeClaims(payload []byte) map[string]string {
	if !json.Valid(payload) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	claims := map[string]string{}
	names := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok || names[name] || len(names) == maxClaims {
			return nil
		}
		names[name] = true
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil
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
	return claims
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
