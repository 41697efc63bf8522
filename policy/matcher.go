// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"sync"
	"time"
)

// Options are what a policy file does not say.
type Options struct {
	// HashKey keys the hash that replaces long and secret components of bucket
	// keys. Processes that share a store must share it, and a process must keep
	// it over restarts to find its buckets again. Empty is a key made at random
	// when the process starts.
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
	attributes []Attribute // that any rule reads, each once, by slot
	uses       [Host + 1]bool
	keyer      *keyer
	scratch    sync.Pool // of *scratch
	warnings   []string
	version    int64
}

// Load reads a policy file in JSON, at most [MaxFileBytes] long, and compiles
// it. Every mistake is reported at once: the error is an [Errors].
func Load(data []byte, opts Options) (*Matcher, error) {
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	c := &compiler{
		report:     &report{},
		matcher:    &Matcher{keyer: newKeyer(opts.HashKey)},
		now:        opts.Now,
		slots:      map[string]int{},
		ruleNames:  map[string]bool{},
		limitNames: map[string]bool{},
	}
	if root := c.parse(data); root != nil {
		c.file(root)
		c.unreachable()
		c.charges()
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

// Warnings returns what is right in the policy and yet worth a look, one line
// each, in the order of the file.
func (m *Matcher) Warnings() []string { return slices.Clone(m.warnings) }

// Version returns the bundle_version, 0 where the file has none. Versions of
// one bundle grow; whoever replaces a policy may insist on that.
func (m *Matcher) Version() int64 { return m.version }
