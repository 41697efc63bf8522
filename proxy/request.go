// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

// rejectReason returns the text for the client if the proxy must reject r, or "". Without a Host, rules would see
// no host and net/http would send the upstream's name. net/http rejects an invalid Content-Length over HTTP/1,
// but reads it as 0 over HTTP/2.
func (p *Proxy) rejectReason(r *http.Request) string {
	switch {
	case !hasPlainTarget(r):
		return httpfacts.AmbiguousTarget
	case r.Host == "":
		return "The request has no host. Send one in the Host field, or in :authority with HTTP/2."
	case r.ProtoMajor > 1 && !isLength(r.Header["Content-Length"]):
		return "Content-Length is invalid. Send it once, as a number of bytes."
	}
	if p.config.UnderscoresInHeaders == refuseUnderscores {
		if name, ok := findOddName(r); ok {
			return fmt.Sprintf("Some servers confuse the header field %q with another one. Use only letters, digits and hyphens in field names.", name)
		}
	}
	return ""
}

func isLength(lines []string) bool {
	if len(lines) == 0 {
		return true
	}
	_, err := strconv.ParseUint(lines[0], 10, 63)
	return err == nil && len(lines) == 1
}

// hasPlainTarget reports whether the target of r is a path or a URL with a path, and the method and host are
// valid. net/http reads no path from other targets ("http:http://host/path", "*", the "host:port" of CONNECT) but
// would forward them. Over HTTP/2 it accepts methods that it would not send. It also accepts hosts that it would
// change: "api.example/x" becomes empty, and "bücher.example" becomes "xn--bcher-kva.example".
func hasPlainTarget(r *http.Request) bool {
	return r.URL.Opaque == "" && r.URL.Path != "*" && r.Method != http.MethodConnect && isMethod(r.Method) && isHostText(r.Host)
}

func isMethod(method string) bool {
	for i := range len(method) {
		if c := method[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return true
}

func isHostText(host string) bool {
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"#/<>?@\\^`{|}", c) >= 0 {
			return false
		}
	}
	return true
}

func (e *exchange) setTarget(s *server) {
	from, to := e.in.URL, e.out.URL
	to.Scheme, to.Host = s.scheme, s.url.Host
	to.RawQuery, to.ForceQuery = cleanQuery(from.RawQuery), from.ForceQuery
	to.Path, to.RawPath = from.Path, from.RawPath
	if s.basePath != "" {
		if from.RawPath != "" || s.url.RawPath != "" {
			to.RawPath = s.baseRaw + from.EscapedPath()
		}
		to.Path = s.basePath + from.Path
	}
	if e.out.Host = e.in.Host; s.ownHost {
		e.out.Host = s.url.Host
	}
}

// cleanQuery removes from query the parts that [url.ParseQuery] cannot parse, because the rules have not seen
// them. It escapes the characters that end a query for some servers.
func cleanQuery(query string) string {
	if isClean(query) {
		return query
	}
	known, _ := url.ParseQuery(query)
	return known.Encode()
}

// maxParams is the maximum number of parameters that [url.ParseQuery] reads.
const maxParams = 10000

func isClean(query string) bool {
	for i := 0; i < len(query); i++ {
		switch query[i] {
		case ';', '#', ' ': // HTTP/2 allows spaces, which would end the target in HTTP/1
			return false
		case '%':
			if i+2 >= len(query) || !isHex(query[i+1]) || !isHex(query[i+2]) {
				return false
			}
		}
	}
	return len(query) <= maxParams || strings.Count(query, "&") < maxParams
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// forwardedFields holds the values of the fields that the proxy writes for every request, to save allocations.
type forwardedFields struct{ address, host, proto, te, connection, upgrade [1]string }

var (
	noAgent     = []string{""} // keeps net/http from sending its own
	extraFields = 6            // extra map capacity for the fields that the proxy adds
)

// outHeader returns the outgoing header: the client's header without the removed fields, plus the forwarding
// fields.
func (e *exchange) outHeader() http.Header {
	in, f, trusted := e.in, &e.fields, e.facts.Trusted()
	h := make(http.Header, len(in.Header)+extraFields)
	for name, values := range in.Header {
		if e.proxy.forwards(name, trusted) {
			h[name] = values
		}
	}
	if hasToken(in.Header["Te"], "trailers") {
		f.te[0] = "trailers"
		h["Te"] = f.te[:]
	}
	if e.protocol != "" {
		f.connection[0], f.upgrade[0] = "Upgrade", e.protocol
		h["Connection"], h["Upgrade"] = f.connection[:], f.upgrade[:]
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = noAgent
	}
	e.setForwardedFields(h, trusted)
	return h
}

// setForwardedFields sets the X-Forwarded-* and Forwarded fields in h. It drops the client's own values, even if
// a trusted proxy passed them on: that proxy is trusted only for the field that it writes.
func (e *exchange) setForwardedFields(h http.Header, trusted bool) {
	in, f := e.in, &e.fields
	address, _, err := net.SplitHostPort(in.RemoteAddr)
	if err == nil {
		f.address[0] = address
		if trusted {
			f.address[0] = strings.Join(append(e.hops("X-Forwarded-For", func(node string) string { return node }), address), ", ")
		}
		h["X-Forwarded-For"] = f.address[:]
	}
	f.host[0], f.proto[0] = in.Host, "http"
	if in.TLS != nil {
		f.proto[0] = "https"
	}
	h["X-Forwarded-Host"], h["X-Forwarded-Proto"] = f.host[:], f.proto[:]
	if !trusted {
		return
	}
	for _, name := range []string{"X-Forwarded-Proto", "X-Forwarded-Host"} {
		if prior := in.Header[name]; len(prior) > 0 {
			h[name] = prior
		}
	}
	if len(in.Header["Forwarded"]) > 0 {
		prior := e.hops("Forwarded", func(node string) string { return "for=" + forwardedNode(node) })
		h["Forwarded"] = []string{strings.Join(append(prior, "for="+forwardedNode(address)), ", ")}
	}
}

// hops returns the addresses before the trusted peer, from the field name if the proxy trusts it, otherwise only
// the client's address.
func (e *exchange) hops(name string, spell func(address string) string) []string {
	if e.proxy.source.ForwardedHeader() == name {
		return slices.Clone(e.in.Header[name])
	}
	client, _ := e.facts.Address()
	if peer, _, err := net.SplitHostPort(e.in.RemoteAddr); client == "" || err == nil && client == peer {
		return nil
	}
	return []string{spell(client)}
}

// forwardedNode returns address in the form of RFC 7239, section 6.
func forwardedNode(address string) string {
	switch {
	case address == "":
		return "unknown"
	case strings.Contains(address, ":"):
		return `"[` + address + `]"`
	}
	return address
}
