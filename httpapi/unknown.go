// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// MaxUnknown bounds the attributes that an answer lists in unknown_attributes.
const MaxUnknown = 16

// readers are the attributes that somebody reads while a policy is in force.
type readers struct {
	policy *policy.Matcher
	names  map[string]struct{}
}

// readers returns those of the policy in force, nil where there is none.
func (a *API) readers() *readers {
	m := a.lim.Policy()
	if m == nil {
		return nil
	}
	if known := a.read.Load(); known != nil && known.policy == m {
		return known
	}
	r := &readers{policy: m, names: map[string]struct{}{}}
	for _, list := range [][]policy.Attribute{m.Attributes(), a.alsoRead} {
		for _, attr := range list {
			r.names[attr.String()] = struct{}{}
		}
	}
	a.read.Store(r)
	return r
}

// unknown returns the attributes of a request that nothing reads: no rule, override, or
// source of a cost, and no hook. One of them may be misspelled. They are in the order of the
// request, at most [MaxUnknown].
func (a *API) unknown(req *mete.Request) (names []string) {
	r := a.readers()
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
