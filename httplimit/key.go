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

// A Key determines which requests share a bucket. The zero Key is invalid: sharing must be an explicit choice.
type Key struct {
	name    string
	value   func(*httpfacts.Facts, *http.Request) (string, bool) // nil: one bucket for all requests
	network bool                                                 // values are addresses
	hashes  bool                                                 // values are hashed with the hashKey
	missing Missing
	err     error
}

// Missing determines how a limit treats a request without the value that its [Key] needs. The zero Missing is
// invalid.
type Missing uint8

const (
	_ Missing = iota

	// MissingDeny denies the request with 403.
	MissingDeny

	// MissingSkip skips this limit for the request.
	MissingSkip
)

// addressBits is the part of an IPv6 address that identifies a client, which controls the rest.
const addressBits = 64

// Everyone uses one bucket for all requests.
func Everyone() Key {
	return Key{name: "all", missing: MissingDeny}
}

// ByAddress uses one bucket per client address: the address of the connection, or the address from the trusted
// proxies ([Config.TrustedProxies]). IPv6 addresses in the same /64 are one client. Requests without a known
// address, for example on a Unix socket without [Config.TrustedHops], get a 403.
func ByAddress() Key {
	return Key{name: "address=", missing: MissingDeny, network: true, value: func(facts *httpfacts.Facts, _ *http.Request) (string, bool) {
		return facts.Address()
	}}
}

// ByHeader uses one bucket per value of a request header, such as X-API-Key. The store sees only a hash of the
// value. A client that can choose the value can choose its bucket: verify the value first, or also limit by
// address. An empty header counts as missing.
func ByHeader(name string, missing Missing) Key {
	a := policy.Attribute{Source: policy.SourceHeader, Name: strings.ToLower(name)}
	k := Key{name: a.Name + "=", missing: missing, hashes: true, err: errors.Join(checkName(name), missing.validate())}
	k.value = func(facts *httpfacts.Facts, _ *http.Request) (string, bool) { return facts.Lookup(a) }
	return k
}

// ByFunc uses one bucket per value that f returns. The store sees only a hash of the value. ok is false if the
// request has no value; an empty value counts as missing. f is required and must be safe for concurrent use. name
// describes the key, for example "user". It has the syntax of [Limit.Name].
func ByFunc(name string, f func(*http.Request) (value string, ok bool), missing Missing) Key {
	k := Key{name: name + "=", missing: missing, hashes: true, err: errors.Join(checkName(name), missing.validate())}
	if f == nil {
		k.err = errors.Join(k.err, fmt.Errorf("key %q: function is required", name))
	}
	k.value = func(_ *httpfacts.Facts, r *http.Request) (string, bool) { return f(r) }
	return k
}

func (k *Key) append(dst []byte, value string, h hashKey) []byte {
	switch {
	case k.hashes:
		return h.append(dst, value)
	case k.network && strings.IndexByte(value, ':') >= 0:
		addr, _ := netip.ParseAddr(value) // always valid
		if prefix, err := addr.Prefix(addressBits); err == nil {
			return prefix.AppendTo(dst)
		}
	}
	return append(dst, value...)
}

func (m Missing) validate() error {
	if m != MissingDeny && m != MissingSkip {
		return errors.New("set DenyMissing or SkipMissing for requests without the key")
	}
	return nil
}
