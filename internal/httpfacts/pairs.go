// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"net/url"
	"strings"
)

// A found is what a search for one name in a query or in cookies came upon.
type found struct {
	value    string
	ok       bool // the name is there
	disputed bool // servers may read another value
}

// add adds one more value of the name.
func (f *found) add(value string) {
	if f.ok {
		f.disputed = true
		return
	}
	f.value, f.ok = value, true
}

// query looks for the parameter called name.
func query(r *http.Request, name string) (f found) {
	f.query(r.URL.RawQuery, name)
	return f
}

// QueryValue returns the first value of the parameter called name in an undecoded
// query, and whether it is there. As in [url.ParseQuery], pairs that are not
// validly encoded or contain a semicolon are no pairs.
func QueryValue(raw, name string) (string, bool) {
	var f found
	f.query(raw, name)
	return f.value, f.ok
}

func (f *found) query(raw, name string) {
	for rest := raw; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if strings.IndexByte(pair, ';') >= 0 { // which some servers read as "&"
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

// cookie looks for the cookie called name.
func cookie(r *http.Request, name string) (f found) {
	f.value, f.ok, f.disputed = Cookie(r.Header["Cookie"], name)
	return f
}

// Cookie returns the value of the cookie called name in the lines of a Cookie header,
// whether it is there, and whether servers may read another value.
func Cookie(lines []string, name string) (value string, ok, disputed bool) {
	var f found
	for _, line := range lines {
		f.cookies(line, name)
	}
	return f.value, f.ok, f.disputed
}

// CookieValue returns the value of the first cookie called name in one line of
// a Cookie header, and whether it is there. It is without the quotes that may enclose
// it, and percent escapes in it are decoded: one session would else have as many
// buckets as its cookie has spellings.
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
		f.commas(pair, name)
	}
}

// cookie adds the value of one cookie.
func (f *found) cookie(value string) {
	value = strings.Trim(value, " \t") // as Express and Django do
	if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
		// Python reads "\162" as "r" between quotes, other servers do not.
		f.disputed = f.disputed || strings.IndexByte(value, '\\') >= 0
	} else if n > 0 && value[0] == '"' {
		f.disputed = true // the end of the quotes is behind a semicolon
	}
	f.add(CookieText(value))
}

// commas disputes the name where it stands after a comma in a pair: servers that keep to
// RFC 2109 begin another cookie there.
func (f *found) commas(pair, name string) {
	_, rest, _ := strings.Cut(pair, ",")
	for piece := range strings.SplitSeq(rest, ",") {
		key, _, isPair := strings.Cut(piece, "=")
		f.disputed = f.disputed || isPair && compare(strings.TrimLeft(key, " \t"), name, false) != other
	}
}

// CookieText returns the value of a cookie with its percent escapes decoded, as PHP
// and the frameworks of Node.js do. What is no escape stays.
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

// A likeness is how a name that was sent compares with one that a rule reads.
type likeness uint8

const (
	other likeness = iota
	alike          // the same to some servers
	same
)

// compare compares the key of a pair with name. Alike are names that differ in case
// (ASP.NET), in which ".", " " or "[" stand for "_" (PHP), with spaces around (Django,
// Express), that begin alike up to an invalid escape, and that begin an array or end early ("name[]", "name\x00": PHP, Rack).
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
					return alike // no escape: servers read "%u0061" as "a", or drop "%"
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

// foldByte returns the one byte that stands for all that servers take for c in names.
func foldByte(c byte) byte {
	switch c {
	case '.', ' ', '[':
		return '_'
	}
	return lowerByte(c)
}

// decodeByte returns the byte that s begins with, decoded, and how long it is in s.
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
