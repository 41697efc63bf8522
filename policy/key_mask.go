// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/metehq/mete/internal/clientaddr"
)

const (
	// maskBytes is how much of a hash replaces the parts of a masked key.
	maskBytes = 6

	// maskLetters is how many letters remain of a masked value.
	maskLetters = 2

	// maskedHash replaces a hash. A reader of the hash could compare it with the hash of
	// a guess.
	maskedHash = hashMark + "…"

	masked = "…"
)

// Mask returns the key for readers that must not learn whose it is: the limit and a hash
// by secret. Equal keys have equal masks, so a reader can tell keys apart and find one
// again.
func (k Key) Mask(secret []byte) Key {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("mete top\x00" + string(k))) // never fails
	return Key(k.Limit() + limitEnd + hashMark + hex.EncodeToString(h.Sum(nil)[:maskBytes]))
}

// CutMask returns the limit and the hash of a key that [Key.Mask] has made. ok is false
// for any other key: in no other one a tilde follows a colon.
func (k Key) CutMask() (limit, hash string, ok bool) {
	at := strings.LastIndex(string(k), limitEnd+hashMark)
	if at < 0 {
		return "", "", false
	}
	hash = string(k[at+len(limitEnd+hashMark):])
	if len(hash) != 2*maskBytes || strings.Trim(hash, "0123456789abcdef") != "" {
		return "", "", false
	}
	return string(k[:at]), hash, true
}

// MaskParts returns the limit alone, and a mark in the place of the parts. An empty key
// stays empty.
func (k Key) MaskParts() Key {
	if k == "" {
		return ""
	}
	return Key(k.Limit() + limitEnd + masked)
}

// MaskHashes returns the key with a mark in the place of each hash, and reports whether
// the key has one.
func (k Key) MaskHashes() (text string, any bool) {
	before, rest, any := strings.Cut(string(k), hashMark)
	text = before
	for found := any; found; {
		rest = strings.TrimLeftFunc(rest, isBase64)
		before, rest, found = strings.Cut(rest, hashMark)
		text += maskedHash + before
	}
	return text, any
}

// isBase64 reports whether c can stand in a hash.
func isBase64(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// Mask returns the rest of the value for readers that must not learn it. Of an address
// the network is left, of a hash nothing, and of another value two letters. Nothing is left
// of a value that is so short that two letters tell most of it.
func (p KeyPart) Mask() string {
	if p.Hashed {
		return maskedHash
	}
	switch address, ok := addressOf(p.Value); {
	case p.Value == "":
		return ""
	case ok:
		return clientaddr.Network(address).String()
	case utf8.RuneCountInString(p.Value) < 3*maskLetters:
		return masked
	}
	return string([]rune(p.Value)[:maskLetters]) + masked
}

// addressOf reads an address as it stands in a key: of a prefix, its first one.
func addressOf(value string) (netip.Addr, bool) {
	if p, err := netip.ParsePrefix(value); err == nil {
		return p.Addr(), true
	}
	a, err := netip.ParseAddr(value)
	return a, err == nil
}
