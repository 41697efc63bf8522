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
	value   func(*httpfacts.Facts, *http.Request) (string, bool) // nil: one bucket for all
	network bool                                                 // values are addresses
	hashes  bool                                                 // values, with the hashKey
	missing Missing
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
	return Key{name: "all", missing: DenyMissing}
}

// ByAddress is one bucket for each client address: that of the connection, or
// what the trusted proxies say ([Config.TrustedProxies]). IPv6 addresses of one
// /64 are one client. Requests whose address is not known, as on a Unix socket
// without [Config.TrustedHops], are answered with 403.
func ByAddress() Key {
	return Key{name: "address=", missing: DenyMissing, network: true, value: func(facts *httpfacts.Facts, _ *http.Request) (string, bool) {
		return facts.Address()
	}}
}

// ByHeader is one bucket for each value of a request header, such as X-API-Key.
// Only a hash of it gets to the store. Whoever can choose the value chooses the
// bucket: verify it first, or limit by address as well. A header that is there
// and empty is missing.
func ByHeader(name string, missing Missing) Key {
	a := policy.Attribute{Source: policy.SourceHeader, Name: strings.ToLower(name)}
	k := Key{name: a.Name + "=", missing: missing, hashes: true, err: errors.Join(checkName(name), missing.check())}
	k.value = func(facts *httpfacts.Facts, _ *http.Request) (string, bool) { return facts.Lookup(a) }
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
	k.value = func(_ *httpfacts.Facts, r *http.Request) (string, bool) { return f(r) }
	return k
}

// append appends what stands for a value in the key of a bucket.
func (k *Key) append(dst []byte, value string, h hashKey) []byte {
	switch {
	case k.hashes:
		return h.append(dst, value)
	case k.network && strings.IndexByte(value, ':') >= 0:
		addr, _ := netip.ParseAddr(value) // valid, as facts have it
		if prefix, err := addr.Prefix(addressBits); err == nil {
			return prefix.AppendTo(dst)
		}
	}
	return append(dst, value...)
}

func (m Missing) check() error {
	if m != DenyMissing && m != SkipMissing {
		return errors.New("say DenyMissing or SkipMissing of requests that have no key")
	}
	return nil
}
