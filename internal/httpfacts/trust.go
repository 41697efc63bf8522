// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Trust says whom to believe about a client's address. The zero Trust believes
// nobody: the client is whoever holds the TCP connection.
//
// A trusted proxy writes the address it was called from at the right end of a
// header. The client is the rightmost address in it that is not a trusted
// proxy's own; what stands further left was sent by the client and may say
// anything. Several lines of the header are one list. A hop that is malformed,
// "unknown" or obfuscated ends the walk, and the last valid address counts.
//
// IPv4-mapped addresses count as IPv4, and the client has the IPv4 address that an
// address of NAT64 or 6to4 stands for; ports and zones are dropped. A
// connection without an address (a Unix socket) is trusted under Hops only.
type Trust struct {
	// Proxies are the trusted proxies' own addresses, at most [MaxProxies]
	// prefixes. A prefix that holds every address is refused.
	Proxies []netip.Prefix

	// Hops is the number of trusted proxies every request passes, the last of
	// which opens the connection: for those whose addresses are not known. It
	// must be exact, at most [MaxHops], and takes the place of Proxies: with
	// both set, Trust is refused. A client that can go around one of the
	// proxies can choose its address.
	Hops int

	// Header names the one header that is read, from trusted proxies only. If
	// empty, X-Forwarded-For. Forwarded is read as RFC 7239 says, every other
	// one as a list of addresses; a single address (X-Real-IP) is a list, too.
	// All other such headers are ignored: proxies pass on the ones they do not
	// write themselves.
	Header string
}

const (
	// MaxProxies bounds [Trust.Proxies].
	MaxProxies = 1024

	// MaxHops bounds [Trust.Hops], and how many hops are walked under
	// [Trust.Proxies]; the last of them counts as the client.
	MaxHops = 32
)

// ErrTrust is wrapped by the errors about a [Trust] that cannot be used.
var ErrTrust = errors.New("httpfacts: invalid trust in proxies")

// Check returns an error that wraps [ErrTrust] if t cannot be used, one a line
// if there are several.
func (t Trust) Check() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrTrust}, args...)...))
	}
	if t.Hops < 0 || t.Hops > MaxHops {
		refuse("%d hops: must be between 0 and %d", t.Hops, MaxHops)
	}
	if t.Hops != 0 && len(t.Proxies) != 0 {
		refuse("both proxies and hops are given: choose one")
	}
	if len(t.Proxies) > MaxProxies {
		refuse("%d proxies: at most %d are allowed", len(t.Proxies), MaxProxies)
	}
	for _, p := range t.Proxies {
		switch {
		case !p.IsValid():
			refuse("proxy %q is not an address prefix", p)
		case p.Bits() == 0:
			refuse("proxy %v trusts everybody, so that clients choose their address: use hops if the proxies' addresses are unknown", p)
		case p.Addr().Is4In6():
			refuse("proxy %v is IPv4-mapped: write it as IPv4", p)
		}
	}
	if strings.ContainsFunc(t.Header, notToken) {
		refuse("header %q is not a header name", t.Header)
	}
	return errors.Join(errs...)
}

// IsZero reports whether t trusts nobody.
func (t Trust) IsZero() bool { return t.Hops == 0 && len(t.Proxies) == 0 }

// A peer is the other end of a connection.
type peer struct {
	addr    netip.Addr // not valid where the connection has no address
	text    string     // of addr, as the connection has it
	trusted bool       // it is a trusted proxy
}

// peer returns the other end of r's connection.
func (t Trust) peer(r *http.Request) peer {
	addr, text := parseNode(r.RemoteAddr)
	return peer{addr, text, t.Hops > 0 || t.contains(addr)}
}

// client returns the address of r's client in its canonical text form, "" if it
// is not known. p is the other end of the connection.
func (t Trust) client(r *http.Request, p peer) string {
	client, text := p.addr, p.text
	if !p.trusted {
		return canonical(client, text)
	}
	hops := t.list(r)
	for passed := 1; passed <= MaxHops; passed++ {
		node, ok := hops.previous()
		if !ok {
			break
		}
		addr, addrText := parseNode(node)
		if !addr.IsValid() {
			break
		}
		client, text = addr, addrText
		if t.Hops > 0 && passed == t.Hops || t.Hops == 0 && !t.contains(addr) {
			break
		}
	}
	return canonical(client, text)
}

// contains reports whether addr is a trusted proxy's.
func (t Trust) contains(addr netip.Addr) bool {
	for _, p := range t.Proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// list returns the hops r says it has passed.
func (t Trust) list(r *http.Request) hopList {
	switch {
	case t.Header == "":
		return hopList{lines: r.Header["X-Forwarded-For"]}
	case strings.EqualFold(t.Header, "Forwarded"):
		return hopList{lines: r.Header["Forwarded"], forwarded: true}
	}
	return hopList{lines: r.Header.Values(t.Header)}
}
