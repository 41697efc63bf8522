// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"time"
)

// MaxFileBytes bounds a policy file.
const MaxFileBytes = 8 << 20

// Options are settings that are not part of a policy file.
type Options struct {
	// HashKey keys the hash that replaces long and secret components of bucket keys. Processes that share a store
	// must have the same key, and must keep it across restarts to find their buckets. If it is empty, mete.New and
	// SetPolicy derive it from the secret of the store: see [Matcher.NeedsHashKey]. A key outside the store
	// protects the hashes from readers of the store.
	HashKey []byte

	// Facts supplies ip:country, ip:asn, ip:tor and ua:bot to requests that do not have them.
	Facts Facts

	// Prices reads the prices of language models if the policy names a file for them. file is the name in the policy. For a
	// policy that it does not trust to name files, a program leaves it nil: such a policy is then invalid.
	// policyyaml.PricesBeside returns a function for files beside the policy.
	Prices func(file string) (*Prices, error)

	// Now is the time that is compared with the expires_at of a bundle. Zero is the current time.
	Now time.Time
}

// A Matcher is a compiled policy. It finds the limits that apply to a request. It is immutable and safe for
// concurrent use. [Load] makes one.
type Matcher struct {
	rules      []*Rule
	groups     int         // of tiers
	scopes     int         // of fallbacks: policies of the bundle
	index      *branch     // of rules
	exceptions *exceptions // may be nil
	own        *exceptions // from the file; may be nil
	enforced   enforced
	delays     bool
	awaits     bool
	timed      bool        // a rule applies only at times
	attributes []Attribute // read by any rule, by slot
	from       []int       // by slot: 1 + the slot of the attribute that it follows from, or 0
	has        []*pattern  // by slot: the values that has wants of the attribute it follows from, or nil
	facts      Facts
	uses       [SourceHost + 1]bool
	keyer      *keyer
	warnings   []Warning
	version    int64

	prices *Prices // of models; nil without any

	expires time.Time
	tests   []byte // the tests section of the file, as JSON
}

// Load parses and compiles a policy file in JSON of at most [MaxFileBytes]. It reports all errors together,
// as [Errors].
func Load(data []byte, opts Options) (*Matcher, error) {
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	c := newCompiler(&Matcher{keyer: newKeyer(opts.HashKey), facts: opts.Facts}, opts.Now)
	c.readFrom = opts.Prices
	if root := c.Parse(data, MaxFileBytes); root != nil {
		c.readFile(root)
		c.reportUnreachable()
		c.checkCharges()
		c.readOverrides(c.top)
		if c.top != nil {
			c.readTests(c.top.Field("tests"))
		}
	}
	if err := c.errors(); err != nil {
		return nil, err
	}
	return c.finish(), nil
}

// Rules returns the rules in the order of the file. The caller must not modify them.
func (m *Matcher) Rules() []*Rule { return m.rules }

// Uses reports whether any rule reads an attribute of the source.
func (m *Matcher) Uses(s Source) bool { return int(s) < len(m.uses) && m.uses[s] }

// Attributes returns the attributes that the rules read, in the order of the file.
func (m *Matcher) Attributes() []Attribute {
	return slices.DeleteFunc(slices.Clone(m.attributes), func(a Attribute) bool { return a.has })
}

// Warnings returns the warnings about valid but questionable parts, in the order of the file. Package lint returns
// these and more.
func (m *Matcher) Warnings() []Warning { return slices.Clone(m.warnings) }

// DependsOnTime reports whether the result of [Matcher.Match] depends on the time.
func (m *Matcher) DependsOnTime() bool { return m.exceptions != nil || m.timed }

// Delays reports whether any limit can admit a request for a later time.
func (m *Matcher) Delays() bool { return m.delays }

// AwaitsResponse reports whether the charge of any limit depends on the response: see [Limit.AwaitsResponse].
func (m *Matcher) AwaitsResponse() bool { return m.awaits }

// Expires returns the expires_at of a bundle, or zero. The matcher keeps working after that time; operators should
// replace an expired bundle.
func (m *Matcher) Expires() time.Time { return m.expires }

// Overrides returns the exceptions of the file, followed by the overrides of [Matcher.WithOverrides]. The caller
// must not modify their data.
func (m *Matcher) Overrides() []Override {
	if m.exceptions == nil {
		return nil
	}
	return slices.Clone(m.exceptions.all)
}

// anyLimit reports whether f holds for any limit, including limits of overrides.
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

// Version returns the bundle_version, or 0. A server can use it to reject older versions of a bundle.
func (m *Matcher) Version() int64 { return m.version }
