// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

// removeUnsent removes the fields that are not forwarded: rules must not see a field that the upstream does not
// see. It removes the hop-by-hop fields that Connection lists (RFC 9110, section 7.6.1), and the fields that
// [fieldRows] removes. It keeps the fields of an upgrade and of trusted proxies, so that no client can remove its
// address.
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
			if _, there := header[name]; there && p.actionOf(name) == forwarded {
				facts.RemoveField(name)
			}
		}
	}
}

func removeConnectionFields(h http.Header, connection []string) {
	for _, line := range connection {
		for option := range strings.SplitSeq(line, ",") {
			delete(h, http.CanonicalHeaderKey(strings.Trim(option, " \t")))
		}
	}
}

// isHop reports whether the response field name, a canonical name, is always hop-by-hop.
func isHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
		"Proxy", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization":
		return true
	}
	return false
}

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

// upgradeProtocol returns the allowed protocol that r asks to upgrade to, or "". HTTP/1.0 has no upgrades (RFC
// 9110, section 7.8), and a WebSocket requires GET (RFC 6455, section 4.1).
func (p *Proxy) upgradeProtocol(r *http.Request) string {
	if len(r.Header["Upgrade"]) == 0 || !r.ProtoAtLeast(1, 1) || !hasToken(r.Header["Connection"], "upgrade") {
		return ""
	}
	protocol := r.Header.Get("Upgrade")
	if len(r.Header["Upgrade"]) > 1 || !p.config.upgrades(protocol) || r.Method != http.MethodGet && strings.EqualFold(protocol, "websocket") {
		return ""
	}
	return protocol
}
