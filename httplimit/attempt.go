// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"net/http"
	"sync"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
)

type attempt struct {
	facts   *httpfacts.Facts
	routes  []*route      // routes whose limits apply
	charges []mete.Charge // charges of routes, in the same order
	key     []byte        // buffer for keys
}

var attempts = sync.Pool{New: func() any { return &attempt{key: make([]byte, 0, 256)} }}

func newAttempt(facts *httpfacts.Facts) *attempt {
	a := attempts.Get().(*attempt)
	a.facts = facts
	return a
}

func (a *attempt) release() {
	clear(a.routes)
	clear(a.charges)
	a.facts, a.routes, a.charges = nil, a.routes[:0], a.charges[:0]
	attempts.Put(a)
}

// charge collects the limits of m that apply to r. missing is a route that denies r because its key is missing.
func (a *attempt) charge(m *Middleware, r *http.Request) (missing *route) {
	for _, route := range m.routes {
		key := route.keyOf(a.facts, r, m.hash, a.key[:0])
		if key == "" {
			if route.key.missing == MissingDeny {
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

// setNames sets the rule and limit of the middleware's charges in d. The limiter knows these limits only by their
// bucket keys. In an outage, a decision may contain only some limits.
func (a *attempt) setNames(d *mete.Decision) {
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

func (a *attempt) client(d *mete.Decision) []string {
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

func missingKey(r *route) mete.Decision {
	return mete.Decision{Rule: r.rule.Name, Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}
}
