// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"slices"
)

var (
	// ErrRequired reports that a limiter over a shared store was created without a policy.
	ErrRequired = errors.New("policy: a policy is required: load one with policy.Load or policyyaml.LoadFile")

	// ErrHashKey reports that the processes that share a store hash bucket keys with a different key than this one.
	// They would not share buckets, and together they would admit more than the limits.
	ErrHashKey = errors.New("policy: the hash key differs from the hash key of the store's other processes")
)

// HashPurpose is the purpose for which a store derives the key of the hashes in bucket keys. All programs and
// servers that share a store need the same purpose.
const HashPurpose = "hashes in bucket keys"

// NeedsHashKey reports whether m has no [Options.HashKey] and can hash a part of a bucket key. Only addresses are
// never hashed: any other value may be long. Without [Matcher.WithHashKey], m uses a random key of the process.
// Another process, or this one after a restart, would use different keys for the same buckets.
func (m *Matcher) NeedsHashKey() bool {
	return m.keyer.random && m.hashes()
}

// WithHashKey returns a copy of m with another key for its hashes, like [Options.HashKey]. m is unchanged.
func (m *Matcher) WithHashKey(key []byte) *Matcher {
	return &Matcher{
		rules: m.rules, groups: m.groups, scopes: m.scopes, index: m.index, exceptions: m.exceptions, own: m.own, delays: m.delays, awaits: m.awaits, timed: m.timed,
		attributes: m.attributes, from: m.from, has: m.has, facts: m.facts, uses: m.uses, keyer: newKeyer(key), warnings: m.warnings, version: m.version, expires: m.expires,
		tests: m.tests, enforced: m.enforced,
	}
}

// HashKeyID returns an identifier of the key of m's hashes, 22 characters long. Equal keys have equal identifiers.
// A store keeps it to detect a process that hashes with another key. A reader of the identifier can test guesses of
// the key, like a reader of the hashes. The identifier is empty if m hashes nothing, or uses a random key.
func (m *Matcher) HashKeyID() string {
	if m.keyer.random || !m.hashes() {
		return ""
	}
	return m.keyer.id()
}

// HashKeyID returns the result of [Matcher.HashKeyID] for a policy with this key.
func HashKeyID(key []byte) string { return newKeyer(key).id() }

// hashes reports whether m can hash a part of a bucket key.
func (m *Matcher) hashes() bool {
	return slices.ContainsFunc(m.rules, func(r *Rule) bool {
		return slices.ContainsFunc(r.keys, func(c component) bool { return c.bits == 0 })
	})
}

// idOf is the text with the hash that identifies a key.
const idOf = "\x00mete: identifier of the key"

func (k *keyer) id() string {
	id := k.appendHash(nil, idOf)
	return string(id[1:])
}
