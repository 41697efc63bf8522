// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// keptFields are fields that stay although Connection names them: how a connection is
// upgraded, which the proxy sees to, and what trusted proxies write, which
// is never sent on as it comes. No client may have its address forgotten.
var keptFields = []string{
	"Connection", "Upgrade", "Te", "Trailer", "Transfer-Encoding", "Keep-Alive",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip",
}

// withoutConnectionFields returns r without the fields that its Connection names,
// which are for the next hop only (RFC 9110, 7.6.1). They would not be sent on, and
// rules must not be asked about what the upstream does not see. It is r where there
// are none.
func (p *Proxy) withoutConnectionFields(r *http.Request) *http.Request {
	clean := r
	for _, line := range r.Header["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := http.CanonicalHeaderKey(strings.Trim(option, " \t"))
			if _, there := r.Header[name]; !there || name == p.limit.ForwardedHeader() || slices.Contains(keptFields, name) {
				continue
			}
			if clean == r {
				clean = r.WithContext(r.Context()) // a shallow copy
				clean.Header = r.Header.Clone()
			}
			delete(clean.Header, name)
		}
	}
	return clean
}

// withoutNamed removes from h the fields that the lines of a Connection name.
func withoutNamed(h http.Header, connection []string) {
	for _, line := range connection {
		for option := range strings.SplitSeq(line, ",") {
			delete(h, http.CanonicalHeaderKey(strings.Trim(option, " \t")))
		}
	}
}

// isHop reports whether a field, by its canonical name, is for one hop only, whatever
// Connection says. Proxy is none, but programs of old take it for the proxy that they
// are to use (CVE-2016-5385).
func isHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		"Proxy", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization":
		return true
	}
	return false
}

// isForwarded reports whether a field is one that says whom a request is from, and is
// never sent on as it comes.
func isForwarded(name string) bool {
	switch name {
	case "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto":
		return true
	}
	return false
}

// hasToken reports whether a list has a token, in any case.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			if strings.EqualFold(strings.Trim(part, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// protocolOf returns the protocol that r asks to upgrade its connection to, if it may,
// and "" else: HTTP/1.0 knows no such thing (RFC 9110, 7.8).
func (p *Proxy) protocolOf(r *http.Request) string {
	if len(r.Header["Upgrade"]) == 0 || !r.ProtoAtLeast(1, 1) || !hasToken(r.Header["Connection"], "upgrade") {
		return ""
	}
	if protocol := r.Header.Get("Upgrade"); len(r.Header["Upgrade"]) == 1 && p.config.upgrades(protocol) {
		return protocol
	}
	return ""
}
