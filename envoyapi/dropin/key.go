// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"crypto/sha256"
	"encoding/base64"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/metehq/mete/store"
)

const (
	// MaxKeyPrefix bounds [Options.KeyPrefix], in bytes.
	MaxKeyPrefix = 256

	// family begins the keys of all counters, after the prefix. It ends with a colon, so that a store does not take a
	// client's text for the family of a key.
	family = "rls:"

	maxSuffixBytes = 32
)

// appendKey appends the key of a descriptor's counter: the domain, the entries, and the length of the window. The
// pattern of a shared threshold replaces the value of its entry.
//
//	key    = prefix "rls:|" domain *( "|" key "=" value ) "|" suffix
//	hashed = prefix "rls:||" sha256 "|" suffix
//
// A backslash precedes a bar, an equals sign or a backslash in a domain, key or value. Different descriptors therefore
// never share a counter. A key that is too long for the store is hashed.
func appendKey(text []byte, prefix, domain string, entries []*commonv3.RateLimitDescriptor_Entry, shared []string, suffix string) []byte {
	start := len(text)
	text = append(append(text, prefix...), family...)
	text = appendEscaped(append(text, '|'), domain)
	for i, e := range entries {
		value := e.GetValue()
		if shared != nil && shared[i] != "" {
			value = shared[i]
		}
		text = appendEscaped(append(text, '|'), e.GetKey())
		text = appendEscaped(append(text, '='), value)
	}
	if len(text)-start > store.MaxKeyBytes-maxSuffixBytes {
		sum := sha256.Sum256(text[start:])
		text = append(append(append(text[:start], prefix...), family...), "||"...)
		text = base64.RawURLEncoding.AppendEncode(text, sum[:])
	}
	return append(append(text, '|'), suffix...)
}

func appendEscaped(text []byte, part string) []byte {
	for i := range len(part) {
		if c := part[i]; c == '|' || c == '=' || c == '\\' {
			text = append(text, '\\')
		}
		text = append(text, part[i])
	}
	return text
}
