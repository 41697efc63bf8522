// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"strings"
)

// shortName is the maximum length of header names that are looked up without an allocation.
const shortName = 64

func (f *Facts) header(name string) (string, bool) {
	if name == "host" { // the server moves it out of the map
		return f.r.Host, f.r.Host != ""
	}
	values := lines(f.r.Header, name)
	if len(f.r.Trailer) > 0 {
		if _, announced := f.r.Trailer[http.CanonicalHeaderKey(name)]; announced {
			f.addDispute(dispute{kind: trailerHeader, name: name})
		}
	}
	if f.disputesLookAlikes() {
		if sent := f.lookAlike(name); sent != "" {
			f.addDispute(dispute{kind: likeHeader, name: name, sent: sent})
		}
	}
	switch {
	case len(values) == 0:
		return "", false
	case len(values) > 1:
		return f.joinLines(name, values), true
	case name == "authorization":
		return Credentials(values[0]), true
	}
	return values[0], true
}

func lines(h http.Header, name string) []string {
	if len(name) > shortName {
		return h[http.CanonicalHeaderKey(name)]
	}
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
	return h[string(buf[:len(name)])]
}

// listFields are the list fields of requests. Their lines can be combined (RFC 9110, section 5.3).
var listFields = map[string]bool{
	"accept": true, "accept-charset": true, "accept-encoding": true, "accept-language": true,
	"access-control-request-headers": true, "cache-control": true, "connection": true,
	"content-encoding": true, "content-language": true, "expect": true, "forwarded": true,
	"if-match": true, "if-none-match": true, "link": true, "pragma": true, "prefer": true,
	"te": true, "trailer": true, "transfer-encoding": true, "upgrade": true, "via": true, "warning": true,
	"x-forwarded-for": true,
}

// IsListField reports whether lines of a header field can be combined without a dispute. name is in lower case.
func IsListField(name string) bool { return listFields[name] || name == "cookie" }

func (f *Facts) joinLines(name string, values []string) string {
	value, disputed := JoinLines(name, values)
	if disputed {
		f.addDispute(dispute{kind: repeatedHeader, name: name})
	}
	return value
}

// JoinLines returns the value of a header field with several lines. name is in lower case. The value is disputed
// unless the field is a list.
func JoinLines(name string, values []string) (value string, disputed bool) {
	switch {
	case listFields[name]:
		return strings.Join(values, ", "), false
	case name == "cookie":
		return strings.Join(values, "; "), false // RFC 9113, 8.2.3
	}
	return values[0], true
}

// DisputeLookAlikes sets [Config.LookAlikes] for this request. It is for a proxy that forwards look-alikes.
func (f *Facts) DisputeLookAlikes() { f.lookAlikes = true }

func (f *Facts) disputesLookAlikes() bool { return f.lookAlikes || f.source.config.LookAlikes }

// lookAlike returns a field of the request or its trailer that differs from name only in case and in the
// characters used for hyphens, or "". CGI, WSGI, Rack and PHP map both to one variable.
func (f *Facts) lookAlike(name string) string {
	for _, fields := range [...]http.Header{f.r.Header, f.r.Trailer} {
		for sent := range fields {
			if len(sent) == len(name) && !IsPlainName(sent) && looksLike(sent, name) {
				return sent
			}
		}
	}
	return ""
}

// IsPlainName reports whether a header name has only letters, digits and hyphens, which all servers read alike.
func IsPlainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && c != '-' {
			return false
		}
	}
	return true
}

// looksLike reports whether sent and name differ only in case and in hyphens. They must have the same length.
func looksLike(sent, name string) bool {
	for i := range len(name) {
		a, b := sent[i], name[i]
		if lowerByte(a) != lowerByte(b) && (isAlphanumeric(a) || isAlphanumeric(b)) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Credentials normalizes the value of an Authorization field: a known scheme gets its usual case and is followed
// by one space. Otherwise one token would have a bucket per spelling of "Bearer".
func Credentials(value string) string {
	for _, scheme := range [...]string{"Bearer", "Basic", "Digest"} {
		if len(value) <= len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
			continue
		}
		rest := value[len(scheme):]
		token := strings.TrimLeft(rest, " \t")
		switch {
		case len(token) == len(rest): // another scheme with the same prefix
			return value
		case len(rest) == len(token)+1 && rest[0] == ' ' && value[:len(scheme)] == scheme:
			return value
		}
		return scheme + " " + token
	}
	return value
}
