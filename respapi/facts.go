// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// MaxAttributes bounds the attributes of a METE command.
const MaxAttributes = 128

// facts are the attributes of one command and implement [policy.Attributes].
type facts struct {
	list  []fact // in the order of the command
	names nameCache
}

type fact struct{ name, value string }

// Lookup implements [policy.Attributes].
func (f *facts) Lookup(a policy.Attribute) (value string, ok bool) {
	name := a.String()
	for i := range f.list {
		if f.list[i].name == name {
			return f.list[i].value, true
		}
	}
	return "", false
}

func (f *facts) clear() {
	clear(f.list[:cap(f.list)])
	f.list = f.list[:0]
}

// parse sets f to pairs of names and values. It returns the first problem.
func (f *facts) parse(args [][]byte) (problem string) {
	f.list = f.list[:0]
	switch {
	case len(args)%2 != 0:
		return fmt.Sprintf("attribute %.100q has no value; write pairs of a name and a value", args[len(args)-1])
	case len(args)/2 > MaxAttributes:
		return fmt.Sprintf("%d attributes: must be at most %d", len(args)/2, MaxAttributes)
	}
	for ; len(args) > 0; args = args[2:] {
		attr, err := f.names.parse(args[0])
		if err != nil {
			return strings.TrimPrefix(err.Error(), policy.ErrAttribute.Error()+": ")
		}
		name := attr.String()
		if _, duplicate := f.Lookup(attr); duplicate {
			return fmt.Sprintf("duplicate attribute %q; send it once", name)
		}
		value, problem := httpfacts.Normalize(attr, string(args[1]))
		if problem != "" {
			return problem
		}
		f.list = append(f.list, fact{name, value})
	}
	return ""
}

// A nameCache keeps parsed attribute names, because clients send the same few names repeatedly.
type nameCache struct {
	kept []cachedName
	next int // next entry to replace
}

type cachedName struct {
	text string
	attr policy.Attribute
}

// maxCachedNames bounds a nameCache.
const maxCachedNames = 8

// parse is a cached [policy.ParseAttribute].
func (c *nameCache) parse(text []byte) (policy.Attribute, error) {
	for i := range c.kept {
		if c.kept[i].text == string(text) {
			return c.kept[i].attr, nil
		}
	}
	attr, err := policy.ParseAttribute(string(text))
	if err != nil {
		return attr, err
	}
	if one := (cachedName{string(text), attr}); len(c.kept) < maxCachedNames {
		c.kept = append(c.kept, one)
	} else {
		c.kept[c.next] = one
		c.next = (c.next + 1) % maxCachedNames
	}
	return attr, nil
}

// MaxUnknown bounds the unknown attributes in a reply.
const MaxUnknown = 16

// knownAttributes holds the attributes that the active policy or a hook reads.
type knownAttributes struct {
	policy *policy.Matcher
	names  map[string]struct{}
}

func (s *Server) knownAttributes() *knownAttributes {
	m := s.lim.Policy()
	if m == nil {
		return nil
	}
	if known := s.known.Load(); known != nil && known.policy == m {
		return known
	}
	known := &knownAttributes{policy: m, names: map[string]struct{}{}}
	for _, list := range [][]policy.Attribute{m.Attributes(), s.config.AlsoRead} {
		for _, attr := range list {
			known.names[attr.String()] = struct{}{}
		}
	}
	s.known.Store(known)
	return known
}

// unknownAttributes returns the attributes of the command that no rule, override, cost or hook reads, for example
// because of a typo. They are in the order of the command, at most [MaxUnknown].
func (c *client) unknownAttributes() (names []string) {
	known := c.server.knownAttributes()
	if known == nil {
		return nil
	}
	for _, f := range c.busy.facts.list {
		if _, ok := known.names[f.name]; !ok {
			if names = append(names, f.name); len(names) == MaxUnknown {
				break
			}
		}
	}
	return names
}
