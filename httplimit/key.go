// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// A Key says which requests share a bucket. The zero Key says nothing, and no
// limit is made of it: who is limited together is never a default.
type Key struct {
	name    string
	of      func(dst []byte, facts *httpfacts.Facts, r *http.Request, h hashKey) ([]byte, bool)
	missing Missing
	hashes  bool // values, with the hashKey
	err     error
}

// Missing says what becomes of a request that lacks what a [Key] is made of.
// That is to be said by whoever makes the key: the zero Missing is an error.
type Missing uint8

const (
	_ Missing = iota

	// DenyMissing answers the request with 403.
	DenyMissing

	// SkipMissing leaves it to the other limits.
	SkipMissing
)

// addressBits is how much of an IPv6 address names a client, who has all of the
// rest.
const addressBits = 64

// Everyone is one bucket for all requests.
func Everyone() Key {
	return Key{name: "all", missing: DenyMissing, of: func(dst []byte, _ *httpfacts.Facts, _ *http.Request, _ hashKey) ([]byte, bool) {
		return dst, true
	}}
}

// ByAddress is one bucket for each client address: that of the connection, or
// what the trusted proxies say ([Config.TrustedProxies]). IPv6 addresses of one
// /64 are one client. Requests whose address is not known, as on a Unix socket
// without [Config.TrustedHops], are answered with 403.
func ByAddress() Key {
	return Key{name: "address=", missing: DenyMissing, of: func(dst []byte, facts *httpfacts.Facts, _ *http.Request, _ hashKey) ([]byte, bool) {
		text, ok := facts.Address()
		if !ok {
			return dst, false
		}
		if strings.IndexByte(text, ':') < 0 {
			return append(dst, text...), true
		}
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return dst, false
		}
		prefix, err := addr.Prefix(addressBits)
		if err != nil {
			return dst, false
		}
		return prefix.AppendTo(dst), true
	}}
}

// ByHeader is one bucket for each value of a request header, such as X-API-Key.
// Only a hash of it gets to the store. Whoever can choose the value chooses the
// bucket: verify it first, or limit by address as well. A header that is there
// and empty is missing.
func ByHeader(name string, missing Missing) Key {
	a := policy.Attribute{Source: policy.Header, Name: strings.ToLower(name)}
	k := Key{name: a.Name + "=", missing: missing, hashes: true, err: errors.Join(checkName(name), missing.check())}
	k.of = func(dst []byte, facts *httpfacts.Facts, _ *http.Request, h hashKey) ([]byte, bool) {
		value, ok := facts.Lookup(a)
		if !ok || value == "" {
			return dst, false
		}
		return h.append(dst, value), true
	}
	return k
}

// ByFunc is one bucket for each value that f returns, of which only a hash gets
// to the store. ok is false where the request has none; an empty value is none.
// f is required and must be safe for concurrent use. The name, as of a [Limit],
// says what it is by, as in "user".
func ByFunc(name string, f func(*http.Request) (value string, ok bool), missing Missing) Key {
	k := Key{name: name + "=", missing: missing, hashes: true, err: errors.Join(checkName(name), missing.check())}
	if f == nil {
		k.err = errors.Join(k.err, fmt.Errorf("key %q: function is required", name))
	}
	k.of = func(dst []byte, _ *httpfacts.Facts, r *http.Request, h hashKey) ([]byte, bool) {
		value, ok := f(r)
		if !ok || value == "" {
			return dst, false
		}
		return h.append(dst, value), true
	}
	return k
}

func (m Missing) check() error {
	if m != DenyMissing && m != SkipMissing {
		return errors.New("say DenyMissing or SkipMissing of requests that have no key")
	}
	return nil
}
