// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

type component struct {
	slot   int
	label  string // as appendLabel writes it: "ip=", or "|ip=" from the second on
	secret bool
	bits   int // of an IPv6 address; 0 for other attributes
}

func newComponent(a Attribute, slot, i int) component {
	name := a.Name
	switch {
	case a.Source == SourceIP:
		name = "ip"
	case name == "" || a.Source == SourceCustom:
		name = a.text
	}
	label := escapeLabel(name)
	if len(label) > maxLabelBytes {
		label = strconv.Itoa(i + 1)
	}
	return component{slot: slot, label: string(appendLabel(nil, label, i)), secret: a.IsSecret(), bits: a.Bits}
}

// name returns the label without delimiters, like [splitComponent].
func (c *component) name() string {
	label, _ := splitComponent(strings.TrimPrefix(c.label, partEnd))
	return label
}

// IsSecret reports whether the value of a may be a credential, judging by the name of a. Keys then contain a hash of
// the value. Hashing too much costs operators a readable key; hashing too little would put a credential into a
// store.
func (a Attribute) IsSecret() bool {
	switch a.Source {
	case SourceCookie:
		return true
	case SourceHeader, SourceQuery, SourceCustom:
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

type keyer struct {
	random bool      // the process generated the key
	pool   sync.Pool // of *hasher
	made   func() *hashes
}

type hasher struct {
	hash.Hash
	buf [512]byte
}

// processKey is the default key of the hashes. All policies of a process share it, so that a reloaded policy finds
// its buckets.
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

// appendHash appends the hash mark and the hash of s.
func (k *keyer) appendHash(dst []byte, s string) []byte {
	made := k.made()
	at, check := made.lookUp(s)
	if h := at.Load(); h != nil && h.check == check {
		return append(dst, h.text[:]...)
	}
	start := len(dst)
	dst = k.makeHash(dst, s)
	at.Store(&madeHash{check, [hashTextBytes]byte(dst[start:])})
	return dst
}

// makeHash is like appendHash without the cache.
func (k *keyer) makeHash(dst []byte, s string) []byte {
	h := k.pool.Get().(*hasher)
	h.Reset()
	for rest := s; rest != ""; {
		n := copy(h.buf[:], rest)
		_, _ = h.Write(h.buf[:n]) // never fails
		rest = rest[n:]
	}
	sum := h.Sum(h.buf[:0])
	dst = AppendKeyHash(dst, sum)
	clear(h.buf[:])
	k.pool.Put(h)
	return dst
}

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

// appendAddress appends an address, cut to its prefix. IPv6 addresses include the prefix length.
func appendAddress(dst []byte, a netip.Addr, bits int) []byte {
	if a.Is4() {
		return a.AppendTo(dst)
	}
	p, _ := a.Prefix(bits)
	return p.AppendTo(dst)
}
