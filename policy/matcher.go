// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
)

// MaxFileBytes bounds a policy file. Longer ones are refused.
const MaxFileBytes = 8 << 20

// Options are what a policy file does not say.
type Options struct {
	// HashKey keys the hash that replaces long and secret components of bucket
	// keys. Processes that share a store must share it, and a process must keep
	// it over restarts to find its buckets again. If it is empty, mete.New and
	// SetPolicy derive it from the secret of the store: see [Matcher.NeedsHashKey].
	// A key that is kept elsewhere protects the hashes from readers of the store.
	HashKey []byte

	// Now is the time at which a bundle must not have expired. Zero is the
	// time of the call.
	Now time.Time
}

// A Matcher is a compiled policy: it says which limits a request falls under.
// It is made by [Load], immutable and safe for concurrent use.
type Matcher struct {
	rules      []*Rule
	groups     int         // of tiers
	scopes     int         // of fallbacks: policies of the bundle
	index      *branch     // of rules
	exceptions *exceptions // nil for none
	own        *exceptions // those of the file
	enforced   enforced
	delays     bool
	attributes []Attribute // that any rule reads, each once, by slot
	uses       [SourceHost + 1]bool
	keyer      *keyer
	warnings   []Warning
	version    int64
	expires    time.Time
	tests      []byte // the section of the file, as JSON
}

// Load reads a policy file in JSON, at most [MaxFileBytes] long, and compiles
// it. Every mistake is reported at once: the error is an [Errors].
func Load(data []byte, opts Options) (*Matcher, error) {
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	c := newCompiler(&Matcher{keyer: newKeyer(opts.HashKey)}, opts.Now)
	if root := c.Parse(data, MaxFileBytes); root != nil {
		c.file(root)
		c.unreachable()
		c.charges()
		c.overrides(c.top)
		if c.top != nil {
			c.readTests(c.top.Field("tests"))
		}
	}
	if err := c.errors(); err != nil {
		return nil, err
	}
	return c.finish(), nil
}

// Rules returns the rules in the order of the file. The caller must not change them.
func (m *Matcher) Rules() []*Rule { return m.rules }

// Uses reports whether any rule reads an attribute of that source.
func (m *Matcher) Uses(s Source) bool { return int(s) < len(m.uses) && m.uses[s] }

// Attributes returns what the rules read about a request, each attribute once,
// in the order of the file.
func (m *Matcher) Attributes() []Attribute { return slices.Clone(m.attributes) }

// Warnings returns what the reader found right and yet worth a look, in the order of the
// file. Package lint finds more, and returns these as well.
func (m *Matcher) Warnings() []Warning { return slices.Clone(m.warnings) }

// Timed reports whether what [Matcher.Match] finds depends on the time.
func (m *Matcher) Timed() bool { return m.exceptions != nil }

// Delays reports whether any limit can admit a request for later.
func (m *Matcher) Delays() bool { return m.delays }

// Expires returns the expires_at of a bundle; zero for never. It stays in force
// after that: that it is old is for people to see to.
func (m *Matcher) Expires() time.Time { return m.expires }

// Overrides returns the exceptions from the rules: those of the file, and then
// those of [Matcher.WithOverrides]. The caller must not change what they refer to.
func (m *Matcher) Overrides() []Override {
	if m.exceptions == nil {
		return nil
	}
	return slices.Clone(m.exceptions.all)
}

// anyLimit reports whether f holds for any limit, those of overrides included.
func (m *Matcher) anyLimit(f func(*Limit) bool) bool {
	any := func(limits []Limit) bool {
		for i := range limits {
			if f(&limits[i]) {
				return true
			}
		}
		return false
	}
	for _, r := range m.rules {
		if any(r.Limits) {
			return true
		}
	}
	if m.exceptions == nil {
		return false
	}
	for _, r := range m.exceptions.rules {
		for i := range r.list {
			if any(r.list[i].limits) {
				return true
			}
		}
		for _, es := range r.keys {
			if slices.ContainsFunc(es, func(e *exception) bool { return any(e.limits) }) {
				return true
			}
		}
	}
	return false
}

// Version returns the bundle_version, 0 where the file has none. Versions of
// one bundle grow; whoever replaces a policy may insist on that.
func (m *Matcher) Version() int64 { return m.version }
