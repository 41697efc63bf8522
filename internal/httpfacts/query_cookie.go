// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"net/url"
	"strings"
)

// A found is the result of a search for one name in a query or in cookies.
type found struct {
	value    string
	ok       bool // the name occurs
	disputed bool // servers may read another value
}

// add records a value of the name. A second one is a dispute.
func (f *found) add(value string) {
	if f.ok {
		f.disputed = true
		return
	}
	f.value, f.ok = value, true
}

func query(r *http.Request, name string) (f found) {
	f.query(r.URL.RawQuery, name)
	return f
}

// QueryValue returns the first value of the named parameter in an undecoded query, and whether it is present. As
// in [url.ParseQuery], pairs with invalid escapes or semicolons are ignored.
func QueryValue(raw, name string) (string, bool) {
	var f found
	f.query(raw, name)
	return f.value, f.ok
}

func (f *found) query(raw, name string) {
	for rest := raw; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if strings.IndexByte(pair, ';') >= 0 { // some servers read it as "&"
			for piece := range strings.SplitSeq(pair, ";") {
				key, _, _ := strings.Cut(piece, "=")
				f.disputed = f.disputed || compare(key, name, true) != other
			}
			continue
		}
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		switch compare(key, name, true) {
		case alike:
			f.disputed = true
		case same:
			if text, err := url.QueryUnescape(value); err == nil {
				f.add(text)
			} else {
				f.disputed = true
			}
		}
	}
}

func cookie(r *http.Request, name string) (f found) {
	f.value, f.ok, f.disputed = Cookie(r.Header["Cookie"], name)
	return f
}

// Cookie returns the value of the named cookie in the lines of a Cookie header. It reports whether it is present,
// and whether servers may read another value.
func Cookie(lines []string, name string) (value string, ok, disputed bool) {
	var f found
	for _, line := range lines {
		f.cookies(line, name)
	}
	return f.value, f.ok, f.disputed
}

// CookieValue returns the value of the first cookie with that name in one line of a Cookie header, and whether it
// is present. It removes enclosing quotes and decodes percent escapes; otherwise one session would have several
// buckets.
func CookieValue(line, name string) (string, bool) {
	var f found
	f.cookies(line, name)
	return f.value, f.ok
}

func (f *found) cookies(line, name string) {
	for rest := line; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, ";")
		key, value, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !ok {
			continue
		}
		switch compare(key, name, false) {
		case same:
			f.cookie(value)
		case alike:
			f.disputed = true
		}
		f.checkCommas(pair, name)
	}
}

func (f *found) cookie(value string) {
	value = strings.Trim(value, " \t") // like Express and Django
	if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
		// Python decodes "\162" between quotes as "r", other servers do not.
		f.disputed = f.disputed || strings.IndexByte(value, '\\') >= 0
	} else if n > 0 && value[0] == '"' {
		f.disputed = true // the closing quote is after a semicolon
	}
	f.add(CookieText(value))
}

// checkCommas disputes the name after a comma in a pair, where RFC 2109 servers start another cookie.
func (f *found) checkCommas(pair, name string) {
	_, rest, _ := strings.Cut(pair, ",")
	for piece := range strings.SplitSeq(rest, ",") {
		key, _, isPair := strings.Cut(piece, "=")
		f.disputed = f.disputed || isPair && compare(strings.TrimLeft(key, " \t"), name, false) != other
	}
}

// CookieText decodes the valid percent escapes of a cookie value, as PHP and Node.js frameworks do.
func CookieText(value string) string {
	if strings.IndexByte(value, '%') < 0 {
		return value
	}
	text := make([]byte, 0, len(value))
	for value != "" {
		c, n := decodeByte(value)
		text, value = append(text, c), value[n:]
	}
	return string(text)
}

// A likeness is the result of comparing a sent name with the name in a rule.
type likeness uint8

const (
	other likeness = iota
	alike          // the same name to some servers
	same
)

// compare compares the key of a pair with name. Names are alike if they differ only in case (ASP.NET), in ".", "
// " or "[" for "_" (PHP), or in surrounding spaces (Django, Express). Names that agree up to an invalid escape
// are alike too, as are names that start an array or end early ("name[]", "name\x00": PHP, Rack).
func compare(key, name string, escaped bool) likeness {
	result, at := same, 0
	for key != "" {
		c, n := key[0], 1
		if escaped {
			switch c {
			case '+':
				c = ' '
			case '%':
				if c, n = decodeByte(key); n == 1 {
					return alike // invalid escape: servers read "%u0061" as "a", or drop "%"
				}
			}
		}
		key = key[n:]
		switch {
		case at == len(name):
			switch c {
			case '[', 0:
				return alike
			case ' ', '\t':
				result = alike
			default:
				return other
			}
		case c == name[at]:
			at++
		case at == 0 && c == ' ':
			result = alike
		case foldByte(c) == foldByte(name[at]):
			result, at = alike, at+1
		default:
			return other
		}
	}
	if at < len(name) {
		return other
	}
	return result
}

func foldByte(c byte) byte {
	switch c {
	case '.', ' ', '[':
		return '_'
	}
	return lowerByte(c)
}

func decodeByte(s string) (c byte, n int) {
	if s[0] == '%' && len(s) > 2 {
		high, ok := unhex(s[1])
		low, ok2 := unhex(s[2])
		if ok && ok2 {
			return high<<4 | low, 3
		}
	}
	return s[0], 1
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
