// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// MaxUnknown bounds the attributes in unknown_attributes.
const MaxUnknown = 16

// knownAttributes holds the attributes that the active policy or a hook reads.
type knownAttributes struct {
	policy *policy.Matcher
	names  map[string]struct{}
}

// knownAttributes returns the attributes that the active policy or a hook reads, or nil without a policy.
func (a *API) knownAttributes() *knownAttributes {
	m := a.lim.Policy()
	if m == nil {
		return nil
	}
	if known := a.known.Load(); known != nil && known.policy == m {
		return known
	}
	r := &knownAttributes{policy: m, names: map[string]struct{}{}}
	for _, list := range [][]policy.Attribute{m.Attributes(), a.alsoRead} {
		for _, attr := range list {
			r.names[attr.String()] = struct{}{}
		}
	}
	a.known.Store(r)
	return r
}

// unknownAttributes returns the attributes of a request that no rule, override, cost or hook reads, for example
// because of a typo. They are in request order, at most [MaxUnknown].
func (a *API) unknownAttributes(req *mete.Request) (names []string) {
	r := a.knownAttributes()
	f, ok := req.Attributes.(*facts)
	if r == nil || !ok {
		return nil
	}
	for i := range f.list {
		if _, known := r.names[f.list[i].name]; !known && !f.list[i].absent {
			if names = append(names, f.list[i].name); len(names) == MaxUnknown {
				break
			}
		}
	}
	return names
}
