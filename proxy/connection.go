// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

// removeUnsent removes the fields that are not sent on: rules must not see a field that the
// upstream does not see. Connection names fields for the next hop only (RFC 9110, 7.6.1), and
// [fieldRows] removes others. The fields of an upgrade stay, and so do the fields that
// trusted proxies write: no client can remove its address.
func (p *Proxy) removeUnsent(facts *httpfacts.Facts) {
	header, trusted := facts.Request().Header, facts.Trusted()
	for name := range header {
		if !p.reads(name, trusted) {
			facts.RemoveField(name)
		}
	}
	for _, line := range header["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := http.CanonicalHeaderKey(strings.Trim(option, " \t"))
			if _, there := header[name]; there && p.fateOf(name) == passes {
				facts.RemoveField(name)
			}
		}
	}
}

// withoutNamed removes from h the fields that the lines of a Connection name.
func withoutNamed(h http.Header, connection []string) {
	for _, line := range connection {
		for option := range strings.SplitSeq(line, ",") {
			delete(h, http.CanonicalHeaderKey(strings.Trim(option, " \t")))
		}
	}
}

// isHop reports whether a field of an answer, by its canonical name, is for one hop
// only, whatever Connection says.
func isHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		"Proxy", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization":
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
// and "" else: HTTP/1.0 knows no such thing (RFC 9110, 7.8), and a WebSocket is asked
// for with GET alone (RFC 6455, 4.1).
func (p *Proxy) protocolOf(r *http.Request) string {
	if len(r.Header["Upgrade"]) == 0 || !r.ProtoAtLeast(1, 1) || !hasToken(r.Header["Connection"], "upgrade") {
		return ""
	}
	protocol := r.Header.Get("Upgrade")
	if len(r.Header["Upgrade"]) > 1 || !p.config.upgrades(protocol) || r.Method != http.MethodGet && strings.EqualFold(protocol, "websocket") {
		return ""
	}
	return protocol
}
