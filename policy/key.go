// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/metehq/mete/store"
)

// A Key is the key of a bucket. It has the name of the limit and, for each attribute of the rule's limit_keys, a
// label and a value.
//
//	free:ip=2001:db8:1:2::/64|path=/v1/users
//	{acme}free:tenant=acme|header:x-api-key=~k3Jd0fQ…
//
// Only this file implements the grammar:
//
//	key   = [ "{" value "}" ] limit ":" [ part *( "|" part ) ]
//	part  = label "=" value
//	value = *( plain / escape ) / "~" hash
//
// Escapes (%XX) replace space, control characters, bytes beyond ASCII, percent signs, bars, tildes and braces. Limits
// also escape the colon, and labels the equals sign. The value in braces is the hash tag of slot_by (slot.go). A tilde
// starts the hash of a value that is long or may be a secret: 128 bits in base64.
//
// A key identifies exactly one bucket, because names of limits are unique in a policy and the text of a key is
// unambiguous. No request can produce a key longer than [MaxKeyBytes], or put a space, a control character or a
// brace into a key.
//
// Stores, package keyed and internal/shards treat keys as opaque text, because programs may use keys of any
// grammar. They only append text that no key of a policy ends with. Package topkeys truncates long keys as text,
// and marks them.
type Key string

const (
	// MaxKeyBytes bounds the length of the keys in a [Match].
	MaxKeyBytes = store.MaxKeyBytes

	// maxComponentBytes bounds an escaped value in a key. Longer values are hashed.
	maxComponentBytes = 64

	// maxLabelBytes bounds the escaped name of an attribute in a key. A longer name is replaced by its position in
	// limit_keys.
	maxLabelBytes = 24

	// hashBytes is the number of bytes of a hash in a key, and hashChars the length of their text.
	hashBytes = 16
	hashChars = (hashBytes*8 + 5) / 6
)

// The longest key fits. It has a tag, an escaped limit name, the longest components with their labels and
// delimiters, and the suffix of a shard.
const _ = uint(MaxKeyBytes - shardKeyBytes - (3*(MaxNameBytes+maxLimitNameBytes) + 2) -
	maxLimitKeys*(maxLabelBytes+maxComponentBytes+2) - (maxComponentBytes + 2))

// The delimiters of the grammar.
const (
	tagOpen  = "{"
	tagClose = "}"
	limitEnd = ":"
	partEnd  = "|"
	labelEnd = "="
	hashMark = "~"
)

// ParseKey converts text from a person or a client to a Key. The error is a [KeyError]: the text is empty or too
// long, or has an unclosed brace. [Matcher.Bucket] reports whether a policy can produce the key.
func ParseKey(text string) (Key, error) {
	switch {
	case text == "":
		return "", &KeyError{"it is empty", "copy it from the explanation of a decision"}
	case len(text) > MaxKeyBytes:
		return "", &KeyError{fmt.Sprintf("it has %d bytes, the maximum is %d", len(text), MaxKeyBytes), ""}
	case strings.HasPrefix(text, tagOpen) && !strings.Contains(text, tagClose):
		return "", &KeyError{"its opening brace is not closed", "copy it from the explanation of a decision"}
	}
	return Key(text), nil
}

// A KeyPart is one attribute in a key.
type KeyPart struct {
	Label  string // the attribute's name, or its position in limit_keys if the name is long
	Value  string // any bytes that a client sent; a hash starts with a tilde
	Hashed bool   // the value is a hash
}

// Tag returns the value of slot_by at the beginning of the key, or "".
func (k Key) Tag() string {
	tag, _, _ := k.split()
	return unescape(tag)
}

// Limit returns the name of the limit: the rule's name, or rule/limit if the rule has several.
func (k Key) Limit() string {
	_, limit, _ := k.split()
	return unescape(limit)
}

// Components returns the text of all parts. A client has equal components under all limits of one rule.
func (k Key) Components() string {
	_, _, components := k.split()
	return components
}

// Parts returns the parts in the order of the rule's limit_keys. The last part of a truncated key may be
// incomplete.
func (k Key) Parts() []KeyPart {
	components := splitComponents(k.Components())
	parts := make([]KeyPart, len(components))
	for i, c := range components {
		label, value := splitComponent(c)
		parts[i] = KeyPart{Label: unescape(label), Value: unescape(value), Hashed: isHashed(value)}
	}
	return parts
}

// split returns the three portions of the key in escaped form, without the braces and without the colon after the
// limit.
func (k Key) split() (tag, limit, components string) {
	rest := string(k)
	if strings.HasPrefix(rest, tagOpen) {
		if before, after, ok := strings.Cut(rest[len(tagOpen):], tagClose); ok {
			tag, rest = before, after
		}
	}
	limit, components, _ = strings.Cut(rest, limitEnd)
	return tag, limit, components
}

// splitComponents returns the parts of components in escaped form.
func splitComponents(components string) []string {
	if components == "" {
		return nil
	}
	return strings.Split(components, partEnd)
}

// splitComponent returns the label and the value of one part in escaped form.
func splitComponent(c string) (label, value string) {
	label, value, _ = strings.Cut(c, labelEnd)
	return label, value
}

func joinKey(tag, limitPrefix, components string) Key {
	if tag != "" {
		tag = tagOpen + tag + tagClose
	}
	return Key(tag + limitPrefix + components)
}

func isHashed(value string) bool { return strings.HasPrefix(value, hashMark) }

// isValue reports whether appendEscaped or AppendKeyHash can write the value.
func isValue(value string) bool {
	if !isHashed(value) {
		return string(appendEscaped(nil, unescape(value))) == value
	}
	hash, err := base64.RawURLEncoding.DecodeString(value[len(hashMark):])
	return err == nil && len(hash) == hashBytes
}

// isCut reports whether a part has a hash where keys of policies have none. Package topkeys truncates long keys and
// appends a tilde and a hash.
func isCut(c string) bool {
	at := strings.Index(c, hashMark)
	return at >= 0 && (!strings.HasSuffix(c[:at], labelEnd) || len(c)-at != len(hashMark)+hashChars)
}

// limitPrefix returns the prefix of the untagged keys of a limit.
func limitPrefix(limitName string) string {
	return strings.ReplaceAll(string(appendEscaped(nil, limitName)), limitEnd, "%3A") + limitEnd
}

// OwnKeyPrefix returns a prefix for keys that a program uses in addition to the keys of its policy. No key of a policy
// begins with it. A name of letters and digits needs no escape.
func OwnKeyPrefix(name string) string { return partEnd + name + limitEnd }

// escapeLabel returns the name of an attribute in the form of a label.
func escapeLabel(name string) string {
	return strings.ReplaceAll(string(appendEscaped(nil, name)), labelEnd, "%3D")
}

func appendLabel(dst []byte, label string, i int) []byte {
	if i > 0 {
		dst = append(dst, partEnd...)
	}
	return append(append(dst, label...), labelEnd...)
}

func AppendKeyHash(dst, sum []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(append(dst, hashMark...), sum[:hashBytes])
}

// plain are the bytes that need no escape in a value.
var plain = func() (t [256]bool) {
	for c := '!'; c <= '~'; c++ {
		t[c] = !strings.ContainsRune(`%|~{}`, c)
	}
	return t
}()

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

// unescape reverses appendEscaped. It keeps a truncated escape.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' }

func unhex(c byte) byte {
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}
