// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"net/url"
	"strings"
)

// shortName is the longest header name that is looked up without allocating.
const shortName = 64

// header returns the first value of the header called name, in lower case.
func header(r *http.Request, name string) (string, bool) {
	var values []string
	switch {
	case name == "host": // the server moves it out of the map
		return r.Host, r.Host != ""
	case len(name) > shortName:
		values = r.Header[http.CanonicalHeaderKey(name)]
	default:
		// http.CanonicalHeaderKey would allocate.
		var buf [shortName]byte
		upper := true
		for i := range len(name) {
			c := name[i]
			if upper && 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			buf[i], upper = c, c == '-'
		}
		values = r.Header[string(buf[:len(name)])]
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// query returns the first parameter called name.
func query(r *http.Request, name string) (string, bool) { return QueryValue(r.URL.RawQuery, name) }

// QueryValue returns the first value of the parameter called name in an undecoded
// query, and whether it is there. As in [url.ParseQuery], pairs that are not
// validly encoded or contain a semicolon are no pairs.
func QueryValue(raw, name string) (string, bool) {
	for rest := raw; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		key, value, _ := strings.Cut(pair, "=")
		if pair == "" || strings.ContainsRune(pair, ';') || !matches(key, name) {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value, true
		}
	}
	return "", false
}

// matches reports whether key, query-escaped, says name.
func matches(key, name string) bool {
	if !strings.ContainsAny(key, "%+") {
		return key == name
	}
	if len(key) > 3*len(name) { // an escape takes three bytes for one
		return false
	}
	key, err := url.QueryUnescape(key)
	return err == nil && key == name
}

// cookie returns the value of the first cookie called name.
func cookie(r *http.Request, name string) (string, bool) {
	for _, line := range r.Header["Cookie"] {
		if value, ok := CookieValue(line, name); ok {
			return value, true
		}
	}
	return "", false
}

// CookieValue returns the value of the first cookie called name in one line of
// a Cookie header, without the quotes that may enclose it, and whether it is
// there.
func CookieValue(line, name string) (string, bool) {
	for rest := line; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, ";")
		key, value, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !ok || key != name {
			continue
		}
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return value, true
	}
	return "", false
}
