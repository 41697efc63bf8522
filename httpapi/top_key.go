// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/policy"
)

// topKey reads the key of a bucket: which limit it is of, and what it is made of. A key
// that no rule of the policy makes has the names that stand in it.
func topKey(key string, r *policy.Rule) (limit string, parts []api.KeyPart) {
	parts = []api.KeyPart{}
	if strings.HasPrefix(key, "{") { // the tag of slot_by
		if _, rest, ok := strings.Cut(key, "}"); ok {
			key = rest
		}
	}
	limit, components, ok := strings.Cut(key, ":")
	limit = unescape(limit)
	if !ok || components == "" {
		return limit, parts
	}
	for i, component := range strings.Split(components, "|") {
		name, value, _ := strings.Cut(component, "=")
		name = unescape(name)
		if r != nil && i < len(r.LimitKeys) {
			name = r.LimitKeys[i].Spelled()
		}
		hashed := strings.HasPrefix(value, "~") // which stands there for nothing else
		parts = append(parts, api.KeyPart{Name: name, Value: unescape(value), Hashed: hashed})
	}
	return limit, parts
}

// unescape reads the %XX of keys. What is cut off is left as it is.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(n))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// A masker says of keys what those may know who may not see them.
type masker struct{ secret []byte }

// maskBytes is how much of a hash stands for a key.
const maskBytes = 6

// key is the limit of a key and a hash, the same for the same key.
func (m *masker) key(limit, key string) string {
	h := hmac.New(sha256.New, m.secret)
	h.Write([]byte("mete top\x00" + key)) // never fails
	return limit + ":~" + hex.EncodeToString(h.Sum(nil)[:maskBytes])
}

// shown is how many letters of a value are left.
const shown = 2

// part masks a value. Of values that are so short that two letters say most of it, and of
// hashes, nothing is left.
func (m *masker) part(p *api.KeyPart) {
	if p.Hashed {
		p.Value = maskedHash
		return
	}
	p.Value = masked(p.Value)
}

// masked is what is left of a value.
func masked(value string) string {
	switch prefix, ok := network(value); {
	case value == "":
		return ""
	case ok:
		return prefix
	case utf8.RuneCountInString(value) < 3*shown:
		return "…"
	default:
		return string([]rune(value)[:shown]) + "…"
	}
}

// network is the network of an address as keys have it: /24, or /48.
func network(value string) (string, bool) {
	address, err := netip.ParseAddr(value)
	if err != nil {
		p, err := netip.ParsePrefix(value)
		if err != nil {
			return "", false
		}
		address = p.Addr()
	}
	bits := 48
	if address.Is4() {
		bits = 24
	}
	p, err := address.WithZone("").Prefix(bits)
	return p.String(), err == nil
}
