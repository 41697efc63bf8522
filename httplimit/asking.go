// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"net/http"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
)

// An asking is one request on its way to a decision.
type asking struct {
	facts   *httpfacts.Facts
	routes  []*route      // whose limits apply
	charges []mete.Charge // theirs
	key     []byte        // space to make keys in
}

var askings = sync.Pool{New: func() any { return &asking{key: make([]byte, 0, 256)} }}

func ask(facts *httpfacts.Facts) *asking {
	a := askings.Get().(*asking)
	a.facts = facts
	return a
}

// release ends the use of a, but not of its facts.
func (a *asking) release() {
	clear(a.routes)
	clear(a.charges)
	a.facts, a.routes, a.charges = nil, a.routes[:0], a.charges[:0]
	askings.Put(a)
}

// charge finds the limits of m that apply to r. missing is one that denies it for
// lack of a key.
func (a *asking) charge(m *Middleware, r *http.Request) (missing *route) {
	for _, route := range m.routes {
		key := route.keyOf(a.facts, r, m.hash, a.key[:0])
		if key == "" {
			if route.key.missing == DenyMissing {
				return route
			}
			continue
		}
		c := route.charge
		c.Key = key
		a.routes, a.charges = append(a.routes, route), append(a.charges, c)
	}
	return nil
}

// name puts the names of our limits into d: those with the keys of our charges, and without
// the name of a rule. In an outage, a decision may show some limits only.
func (a *asking) name(d *mete.Decision) {
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		if s.Rule.Name != "" {
			continue
		}
		for j := range a.charges {
			if a.charges[j].Key == s.Key {
				s.Rule, s.Limit = &a.routes[j].rule, &a.routes[j].limit
			}
		}
	}
	if decider := d.Decider(); decider != nil {
		d.Rule = decider.Rule.Name
	}
}

// client is what tells apart those that d is told to.
func (a *asking) client(d *mete.Decision) []string {
	parts := a.facts.Client(d)
	if decider := d.Decider(); decider != nil {
		for i, route := range a.routes {
			if decider.Rule == &route.rule {
				parts = append(parts, a.charges[i].Key)
			}
		}
	}
	return parts
}

// lacking is the denial of a request that lacks the key of a limit.
func lacking(r *route) mete.Decision {
	return mete.Decision{Rule: r.rule.Name, Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}
}
