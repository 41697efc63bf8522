// SPDX-License-Identifier: Apache-2.0

package policy

import "slices"

// HashPurpose is the purpose for which a store derives the key of the hashes in bucket
// keys. Programs and servers that share a store need the same one.
const HashPurpose = "hashes in bucket keys"

// NeedsHashKey reports whether m has no [Options.HashKey] and can hash a part of a bucket
// key. Only an address is never hashed: any other value may be long. Until
// [Matcher.WithHashKey], m uses a key that the process has made at random. Another
// process, and this one after a restart, would have other keys for the same buckets.
func (m *Matcher) NeedsHashKey() bool {
	return m.keyer.random && slices.ContainsFunc(m.rules, func(r *Rule) bool {
		return slices.ContainsFunc(r.keys, func(c component) bool { return c.bits == 0 })
	})
}

// WithHashKey returns m with another key for its hashes, as by [Options.HashKey]. m itself
// stays as it is.
func (m *Matcher) WithHashKey(key []byte) *Matcher {
	return &Matcher{
		rules: m.rules, groups: m.groups, scopes: m.scopes, index: m.index, exceptions: m.exceptions, own: m.own, delays: m.delays,
		attributes: m.attributes, uses: m.uses, keyer: newKeyer(key), warnings: m.warnings, version: m.version, expires: m.expires,
		tests: m.tests, enforced: m.enforced,
	}
}
