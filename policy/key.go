// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"github.com/metehq/mete/store"
)

// A bucket's key is the name of its limit and, for each attribute of its rule's
// limit_keys, the attribute's name and value:
//
//	free:ip=2001:db8:1:2::/64|path=/v1/users
//
// It is injective: the name is unique in the file and ends at the first colon,
// components end at a bar, and a byte of a name or value that is not plain is
// written %XX. A value that is long or may be a secret is replaced by ~ and 128
// bits of a keyed hash. What a request sends can make a key neither longer than
// [MaxKeyBytes] nor carry a space, a brace (Redis' hash tags) or a control
// character.
//
// Under slot_by the key of a rule that has that attribute begins with its value in
// braces, as a component has it: see slot.go.

const (
	// MaxKeyBytes bounds the length of the keys in a [Match].
	MaxKeyBytes = store.MaxKeyBytes

	// maxComponentBytes is how long a value may be, escaped, to stand in a key;
	// longer ones are hashed.
	maxComponentBytes = 64

	// maxLabelBytes is how long the name of an attribute may be, escaped, to
	// stand in a key; longer ones are replaced by their place in limit_keys.
	maxLabelBytes = 24

	// hashBytes is how much of a hash stands in a key.
	hashBytes = 16
)

// The longest key fits: an escaped limit name and colon, the longest components
// with their labels, equals signs and bars, a tag, and what is added for a shard.
const _ = uint(MaxKeyBytes - shardKeyBytes - (3*(MaxNameBytes+maxLimitNameBytes) + 2) -
	MaxLimitKeys*(maxLabelBytes+maxComponentBytes+2) - (maxComponentBytes + 2))

// A component is one attribute's part in the keys of a rule.
type component struct {
	slot   int
	label  string // "ip=", or "|ip=" from the second on
	secret bool
	bits   int // of an IPv6 address; 0 for other attributes
}

// newComponent returns the component of the i'th attribute of a key.
func newComponent(a Attribute, slot, i int) component {
	name := a.Name
	switch {
	case a.Source == IP:
		name = "ip"
	case name == "" || a.Source == Custom:
		name = a.text
	}
	label := string(appendEscaped(nil, name))
	if len(label) > maxLabelBytes {
		label = strconv.Itoa(i + 1)
	}
	if label += "="; i > 0 {
		label = "|" + label
	}
	return component{slot: slot, label: label, secret: secret(a), bits: a.Bits}
}

// secret reports whether an attribute's value may be a credential. A value that
// is hashed without need costs an operator a readable key; the other mistake
// puts a credential into a store.
func secret(a Attribute) bool {
	switch a.Source {
	case Cookie:
		return true
	case Header, Query, Custom:
	default:
		return false
	}
	name := strings.ToLower(a.text[strings.IndexByte(a.text, ':')+1:])
	for _, word := range []string{"auth", "cookie", "key", "token", "secret", "session", "passw", "pwd", "credential", "signature", "sid", "jwt", "cert", "csrf"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// Secret reports whether the value of a may be a credential, by the name of a: it then
// stands in keys as a hash, and should stand nowhere else.
func (a Attribute) Secret() bool { return secret(a) }

// keyer makes the keyed hashes.
type keyer struct {
	random bool      // the key is the process's own
	pool   sync.Pool // of *hasher
	made   func() *hashes
}

type hasher struct {
	hash.Hash
	buf [512]byte
}

// processKey keys the hashes where nobody says with what. It is the same for
// all policies of a process, so that a reload finds its buckets.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
})

func newKeyer(key []byte) *keyer {
	random := len(key) == 0
	if random {
		key = processKey()
	}
	key = append([]byte(nil), key...)
	return &keyer{
		random: random,
		pool:   sync.Pool{New: func() any { return &hasher{Hash: hmac.New(sha256.New, key)} }},
		made:   sync.OnceValue(newHashes),
	}
}

// appendHash appends the mark of a hash and the hash of s.
func (k *keyer) appendHash(dst []byte, s string) []byte {
	made := k.made()
	at, check := made.place(s)
	if h := at.Load(); h != nil && h.check == check {
		return append(dst, h.text[:]...)
	}
	start := len(dst)
	dst = k.makeHash(dst, s)
	at.Store(&madeHash{check, [hashTextBytes]byte(dst[start:])})
	return dst
}

// makeHash is appendHash without a look at the hashes that were made before.
func (k *keyer) makeHash(dst []byte, s string) []byte {
	h := k.pool.Get().(*hasher)
	h.Reset()
	for rest := s; rest != ""; {
		n := copy(h.buf[:], rest)
		_, _ = h.Write(h.buf[:n]) // never fails
		rest = rest[n:]
	}
	sum := h.Sum(h.buf[:0])
	dst = append(dst, '~')
	dst = base64.RawURLEncoding.AppendEncode(dst, sum[:hashBytes])
	clear(h.buf[:])
	k.pool.Put(h)
	return dst
}

// appendComponent appends the label and the value of one component.
func (k *keyer) appendComponent(dst []byte, c *component, f *fact) []byte {
	dst = append(dst, c.label...)
	switch {
	case c.bits > 0 && f.present:
		return appendAddress(dst, f.addr, c.bits)
	case c.secret && f.value != "":
		return k.appendHash(dst, f.value)
	}
	start := len(dst)
	if len(f.value) <= maxComponentBytes {
		dst = appendEscaped(dst, f.value)
	}
	if len(f.value) > maxComponentBytes || len(dst)-start > maxComponentBytes {
		dst = k.appendHash(dst[:start], f.value)
	}
	return dst
}

// appendAddress appends an address cut to its prefix. The prefix of an IPv6
// address is written out.
func appendAddress(dst []byte, a netip.Addr, bits int) []byte {
	if a.Is4() {
		return a.AppendTo(dst)
	}
	p, _ := a.Prefix(bits)
	return p.AppendTo(dst)
}

// plain are the bytes that stand for themselves in a key, but for the colon,
// which is plain in values only.
var plain = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = !strings.ContainsRune(`%|~{}`, c)
	}
	return t
}()

// appendEscaped appends a value.
func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			return appendEscapedSlow(dst, s)
		}
	}
	return append(dst, s...)
}

func appendEscapedSlow(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if plain[c] {
			dst = append(dst, c)
			continue
		}
		const hex = "0123456789ABCDEF"
		dst = append(dst, '%', hex[c>>4], hex[c&15])
	}
	return dst
}

// keyPrefix is how the keys of a limit begin.
func keyPrefix(limitName string) string {
	return strings.ReplaceAll(string(appendEscaped(nil, limitName)), ":", "%3A") + ":"
}
