// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Trust configures trusted proxies. With the zero Trust, the client is the peer of the TCP connection.
//
// A trusted proxy appends the address of its peer to a header. The client is the rightmost address that is not a
// trusted proxy; addresses further left come from the client and are not trusted. Several header lines are one
// list. At a malformed, "unknown" or obfuscated address the search ends, and the last valid address counts.
//
// IPv4-mapped addresses count as IPv4. For a NAT64 or 6to4 address, the client has the IPv4 address that it
// represents. Ports and zones are dropped. A connection without an address (a Unix socket) is trusted only with
// Hops.
type Trust struct {
	// Proxies are the trusted proxies, at most [MaxProxies] prefixes. A prefix with every address is invalid.
	Proxies []netip.Prefix

	// Hops is the number of trusted proxies that every request passes, at most [MaxHops]; the last one opens the
	// connection. Use it if their addresses are unknown. It must be exact: a client that can bypass a proxy can
	// choose its address. Setting both Hops and Proxies is an error.
	Hops int

	// Header is the header that is read, from trusted proxies only. Empty means X-Forwarded-For. Forwarded is
	// parsed as in RFC 7239, any other header as a list of addresses, such as X-Real-IP with one address. Other
	// such headers are ignored, because proxies forward headers that they do not write.
	Header string

	// PeerInList permits the header to end with the address of the connection's peer, which then does not count as
	// a hop. It is for a receiver in front of the program that may have appended that address.
	PeerInList bool
}

const (
	// MaxProxies bounds [Trust.Proxies].
	MaxProxies = 1024

	// MaxHops bounds [Trust.Hops], and the number of addresses that are searched with [Trust.Proxies]. The last
	// of them counts as the client.
	MaxHops = 32
)

// ErrTrust is wrapped by the errors of an invalid [Trust].
var ErrTrust = errors.New("httpfacts: invalid trust in proxies")

// Check returns an error that wraps [ErrTrust] for each invalid setting, one per line.
func (t Trust) Check() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrTrust}, args...)...))
	}
	if t.Hops < 0 || t.Hops > MaxHops {
		refuse("%d hops: must be between 0 and %d", t.Hops, MaxHops)
	}
	if t.Hops != 0 && len(t.Proxies) != 0 {
		refuse("proxies and hops cannot be combined: choose one")
	}
	if len(t.Proxies) > MaxProxies {
		refuse("%d proxies: at most %d are allowed", len(t.Proxies), MaxProxies)
	}
	for _, p := range t.Proxies {
		switch {
		case !p.IsValid():
			refuse("proxy %q is not an address prefix", p)
		case p.Bits() == 0:
			refuse("proxy %v contains every address, so clients could choose their address: use hops if the proxies' addresses are unknown", p)
		case p.Addr().Is4In6():
			refuse("proxy %v is IPv4-mapped: write it as IPv4", p)
		}
	}
	if strings.ContainsFunc(t.Header, notToken) {
		refuse("header %q is not a header name", t.Header)
	}
	return errors.Join(errs...)
}

func (t Trust) IsZero() bool { return t.Hops == 0 && len(t.Proxies) == 0 }

type peer struct {
	addr    netip.Addr // invalid if the connection has no address
	text    string     // addr as written by the connection
	trusted bool       // the peer is a trusted proxy
}

func (t Trust) peer(r *http.Request) peer {
	addr, text := parseNode(r.RemoteAddr)
	return peer{addr, text, t.Hops > 0 || t.contains(addr)}
}

// client returns the canonical address of r's client, or "" if it is unknown. p is the connection's peer.
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
		if t.PeerInList && passed == 1 && addr == p.addr {
			t.PeerInList, passed = false, 0
			continue
		}
		client, text = addr, addrText
		if t.Hops > 0 && passed == t.Hops || t.Hops == 0 && !t.contains(addr) {
			break
		}
	}
	return canonical(client, text)
}

func (t Trust) contains(addr netip.Addr) bool {
	for _, p := range t.Proxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func (t Trust) list(r *http.Request) hopList {
	switch {
	case t.Header == "":
		return hopList{lines: r.Header["X-Forwarded-For"]}
	case strings.EqualFold(t.Header, "Forwarded"):
		return hopList{lines: r.Header["Forwarded"], forwarded: true}
	}
	return hopList{lines: r.Header.Values(t.Header)}
}
