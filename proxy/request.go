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

// refusal describes, for the client, why r is not sent on, "" where it is. Without a
// Host, rules would know no host, and net/http would send the name of the upstream. A
// Content-Length that is no length would be sent on as another one: net/http refuses it
// over HTTP/1, and takes it for 0 over HTTP/2.
func (p *Proxy) refusal(r *http.Request) string {
	switch {
	case !isPlain(r):
		return httpfacts.DisputedPlace
	case r.Host == "":
		return "The request names no host. Send one in the Host field, or in :authority with HTTP/2."
	case r.ProtoMajor > 1 && !isLength(r.Header["Content-Length"]):
		return "Content-Length is no length. Send it once, as a number of bytes."
	}
	if p.config.UnderscoresInHeaders == refuseUnderscores {
		if name, ok := oddName(r); ok {
			return fmt.Sprintf("Some servers read the header field %q as another one. Use only letters, digits and hyphens in its name.", name)
		}
	}
	return ""
}

// isLength reports whether the lines of a Content-Length are none, or one number.
func isLength(lines []string) bool {
	if len(lines) == 0 {
		return true
	}
	_, err := strconv.ParseUint(lines[0], 10, 63)
	return err == nil && len(lines) == 1
}

// isPlain reports whether r's target is a path or a URL with one. Of others
// ("http:http://host/path", "*", the "host:port" of CONNECT) net/http reads no path,
// and would yet send them on for the upstream to read. And over HTTP/2 it takes methods
// that it would not send, and hosts that it refuses over HTTP/1, to send on another one:
// nothing for "api.example/x", and "xn--bcher-kva.example" for "bücher.example".
func isPlain(r *http.Request) bool {
	return r.URL.Opaque == "" && r.URL.Path != "*" && r.Method != http.MethodConnect && isMethod(r.Method) && isHostText(r.Host)
}

// isMethod reports whether method has only what a method may be written with.
func isMethod(method string) bool {
	for i := range len(method) {
		if c := method[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return false
		}
	}
	return true
}

// isHostText reports whether host has only what a Host may be written with.
func isHostText(host string) bool {
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"#/<>?@\\^`{|}", c) >= 0 {
			return false
		}
	}
	return true
}

// address makes the request one to s.
func (e *exchange) address(s *server) {
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
	if e.proxy.config.RewriteHost {
		e.out.Host = s.url.Host
	}
}

// cleanQuery returns a query without what [url.ParseQuery] does not understand, and
// so rules have not seen, and with what ends a query for some servers, but not for
// rules, escaped. It is query where there is nothing like that.
func cleanQuery(query string) string {
	if isClean(query) {
		return query
	}
	known, _ := url.ParseQuery(query)
	return known.Encode()
}

// maxParams is how many parameters [url.ParseQuery] reads.
const maxParams = 10000

func isClean(query string) bool {
	for i := 0; i < len(query); i++ {
		switch query[i] {
		case ';', '#', ' ': // HTTP/2 has spaces, which would end the target in a line of HTTP/1
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

// forwardedFields are the values of fields that are made for every request.
type forwardedFields struct{ address, host, proto, te, connection, upgrade [1]string }

var (
	noAgent   = []string{""} // else net/http says its own
	fieldRoom = 6            // for the fields that are added
)

// outHeader returns the header that is sent on: that of the client without what is
// for this hop only, and with whom it is from.
func (e *exchange) outHeader() http.Header {
	in, f, trusted := e.in, &e.fields, e.facts.Trusted()
	h := make(http.Header, len(in.Header)+fieldRoom)
	for name, values := range in.Header {
		if e.proxy.sendsOn(name, trusted) {
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
	e.sayForwarded(h, trusted)
	return h
}

// sayForwarded says whom the request is from. What the client says of that is gone,
// also where a trusted proxy has passed it on: such a one is believed in the one field
// that it writes.
func (e *exchange) sayForwarded(h http.Header, trusted bool) {
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

// hops are those before the trusted proxy that has opened the connection, as it says
// in that field, or else the client alone.
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

// forwardedNode is an address in the form of RFC 7239 §6.
func forwardedNode(address string) string {
	switch {
	case address == "":
		return "unknown"
	case strings.Contains(address, ":"):
		return `"[` + address + `]"`
	}
	return address
}
