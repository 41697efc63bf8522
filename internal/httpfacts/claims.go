// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxTokenBytes bounds a token that is read without verification.
const MaxTokenBytes = 8 << 10

// Bounds of claims. Claims that exceed a bound or are malformed are ignored as a whole.
const (
	maxClaims     = 128 // at the top level
	maxClaimDepth = 16  // nested arrays and objects
)

// unverifiedClaims returns the claims of r's bearer token. It verifies NOTHING about the token.
func unverifiedClaims(r *http.Request) map[string]string {
	token, several := BearerToken(r)
	if several || len(token) > MaxTokenBytes {
		return nil
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 { // an encrypted token has five
		return nil
	}
	claims, _ := ReadClaims(parts[1])
	return claims
}

// BearerToken returns the token in r's Authorization header, or "". If there are several such headers it returns
// none, because whatever verified the request may have read another one.
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

// ReadClaims reads the claims from one part of a token, a JSON object in base64url. Top-level strings, numbers
// (as written) and booleans have a value. A list of them is one text, separated by spaces: see joinValues. Other claims
// are missing. It rejects a part with a duplicate claim,
// because the verifier may have read the other one.
func ReadClaims(part string) (claims map[string]string, ok bool) { return readPart(part, true) }

// ReadHeader is ReadClaims for the header of a token, without lists.
func ReadHeader(part string) (fields map[string]string, ok bool) { return readPart(part, false) }

func readPart(part string, lists bool) (claims map[string]string, ok bool) {
	if strings.ContainsAny(part, "\r\n") { // the decoder would skip them
		return nil, false
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil || !utf8.Valid(payload) || nesting(payload) > maxClaimDepth || !json.Valid(payload) {
		return nil, false
	}
	return decodeClaims(payload, lists)
}

// joinValues returns the strings, numbers and booleans of a list, separated by spaces, as scope in OAuth. It returns
// false if the list is empty, or has another value, an empty string or a string with a space.
func joinValues(list []any) (string, bool) {
	var values []string
	for _, v := range list {
		text := ""
		switch v := v.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		case bool:
			text = strconv.FormatBool(v)
		}
		if text == "" || strings.Contains(text, " ") {
			return "", false
		}
		values = append(values, text)
	}
	return strings.Join(values, " "), len(values) > 0
}

func decodeClaims(payload []byte, lists bool) (claims map[string]string, ok bool) {
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
		case []any:
			if text, ok := joinValues(v); ok && lists {
				claims[name] = text
			}
		}
	}
	return claims, true
}

// nesting returns the nesting depth of JSON text. It protects the decoder, so it also accepts invalid text.
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
