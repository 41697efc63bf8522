// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"strings"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
)

// A match is the limit of one descriptor.
type match struct {
	rule *rule // nil if no limit applies

	// shared has, for each entry, the pattern that replaces its value in the counter's key, or "". It is empty if no
	// entry has share_threshold.
	shared []string
}

// A finder matches descriptors. It keeps memory for the next match.
type finder struct {
	text   []byte   // KEY_VALUE of an entry
	metric []byte   // the name for the statistics
	shared []string // the patterns of all matches of a request
}

// find returns the limit of a descriptor below n, the node of its domain. Each entry selects a child: first by its key
// and value, then by the first wildcard that matches, then by its key alone. Only a child for the last entry has the
// limit. Find writes the name for the statistics to f.metric.
func (f *finder) find(n *node, domain string, entries []*commonv3.RateLimitDescriptor_Entry) match {
	f.metric = append(f.metric[:0], domain...)
	first := len(f.shared)
	for i, e := range entries {
		child, wild, exact := f.step(n, e)
		if child == nil {
			break
		}
		pattern := ""
		if wild {
			if pattern = strings.TrimPrefix(child.composite, e.GetKey()+"_"); child.shared {
				for len(f.shared) <= first+i {
					f.shared = append(f.shared, "")
				}
				f.shared[first+i] = pattern
			}
		}
		f.nameEntry(child, e, pattern, exact)
		if i == len(entries)-1 && child.rule != nil {
			return f.complete(child.rule, domain, entries, first)
		}
		if len(child.children) == 0 {
			break
		}
		n = child
	}
	f.shared = f.shared[:first]
	return match{}
}

// step returns the child of n for an entry. Wild reports whether a wildcard matched, and exact whether the key and the
// value did.
func (f *finder) step(n *node, e *commonv3.RateLimitDescriptor_Entry) (child *node, wild, exact bool) {
	f.text = append(append(append(f.text[:0], e.GetKey()...), '_'), e.GetValue()...)
	if child = n.children[string(f.text)]; child != nil {
		return child, false, true
	}
	for i := range n.wildcards {
		if w := &n.wildcards[i]; w.matches(f.text) {
			return w.node, true, false
		}
	}
	return n.children[e.GetKey()], false, false
}

// nameEntry appends an entry to the name for the statistics: its key, and the value or pattern that the configuration
// names. With value_to_metric it is the value of the request.
func (f *finder) nameEntry(child *node, e *commonv3.RateLimitDescriptor_Entry, pattern string, exact bool) {
	value := ""
	switch {
	case pattern != "" && (child.shared || !child.valueToMetric):
		value = pattern
	case pattern != "" || exact || child.valueToMetric:
		value = e.GetValue()
	}
	f.metric = append(append(f.metric, '.'), e.GetKey()...)
	if value != "" {
		f.metric = append(append(f.metric, '_'), value...)
	}
}

// complete returns the match of all entries with a rule. With detailed_metric, the name for the statistics has the
// values of all entries, or the patterns of shared ones.
func (f *finder) complete(r *rule, domain string, entries []*commonv3.RateLimitDescriptor_Entry, first int) match {
	m := match{rule: r}
	if len(f.shared) > first {
		for len(f.shared) < first+len(entries) {
			f.shared = append(f.shared, "")
		}
		m.shared = f.shared[first:]
	}
	if !r.detailed {
		return m
	}
	f.metric = append(f.metric[:0], domain...)
	for i, e := range entries {
		value, named := e.GetValue(), true
		if m.shared != nil {
			if m.shared[i] != "" {
				value = m.shared[i]
			}
			named = value != ""
		}
		f.metric = append(append(f.metric, '.'), e.GetKey()...)
		if named {
			f.metric = append(append(f.metric, '_'), value...)
		}
	}
	return m
}

// nameCaller writes the name for the statistics of a caller's limit to f.metric.
func (f *finder) nameCaller(domain string, entries []*commonv3.RateLimitDescriptor_Entry) {
	f.metric = append(append(f.metric[:0], domain...), '.')
	for i, e := range entries {
		if i > 0 {
			f.metric = append(f.metric, '.')
		}
		f.metric = append(f.metric, e.GetKey()...)
		if e.GetValue() != "" {
			f.metric = append(append(f.metric, '_'), e.GetValue()...)
		}
	}
}
