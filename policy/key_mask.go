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
	// maskBytes is the length of the hash that replaces the parts of a masked key.
	maskBytes = 6

	// maskLetters is the number of letters that remain of a masked value.
	maskLetters = 2

	// maskedHash replaces a hash, because a reader could compare the hash with hashes of guesses.
	maskedHash = hashMark + "…"

	masked = "…"
)

// Mask returns the limit and a hash of the key under secret, for readers that must not learn the client. Equal keys
// have equal masks, so readers can tell keys apart and recognize them.
func (k Key) Mask(secret []byte) Key {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("mete top\x00" + string(k))) // never fails
	return Key(k.Limit() + limitEnd + hashMark + hex.EncodeToString(h.Sum(nil)[:maskBytes]))
}

// CutMask returns the limit and the hash of a key that [Key.Mask] returned. For other keys ok is false, because
// they have no tilde after a colon.
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

// MaskParts returns the limit followed by a mark that replaces the parts. An empty key stays empty.
func (k Key) MaskParts() Key {
	if k == "" {
		return ""
	}
	return Key(k.Limit() + limitEnd + masked)
}

// MaskHashes returns the key with each hash replaced by a mark, and reports whether it has one.
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

func isBase64(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// Mask returns a shortened value for readers that must not learn it. It keeps the network of an address, two letters
// of other values, and nothing of a hash. Short values are masked completely, because two letters would reveal
// most of them.
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

// addressOf parses the address in a key; for a prefix, it returns the first address.
func addressOf(value string) (netip.Addr, bool) {
	if p, err := netip.ParsePrefix(value); err == nil {
		return p.Addr(), true
	}
	a, err := netip.ParseAddr(value)
	return a, err == nil
}
