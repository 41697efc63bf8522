// SPDX-License-Identifier: Apache-2.0

package judge

import "time"

// Lost returns how many denied takes the promise would have admitted. A denial is justified if the takes of some window
// before it may have spent all tokens of one of its keys. A lost take then counts as admitted, so that a caller that
// asks again and again does not lose the same token twice.
func (h *History) Lost(s Shape) int {
	takes := h.takesByCall()
	spent := map[string][]spending{}
	spend := func(t Take) {
		for _, c := range t.Charges {
			spent[c.Key] = append(spent[c.Key], spending{t.Called, t.Done, 1})
		}
	}
	for _, t := range takes {
		// A denied take may see tokens that a later call spent. A denial by one of two limits must not pay the other.
		if t.Outcome == Admitted || s == RequestCounter && t.Outcome == Denied && len(t.Charges) == 1 {
			spend(t)
		}
	}
	for _, c := range h.changes {
		spent[c.key] = append(spent[c.key], spending{c.at, c.at, all})
	}
	lost := 0
	for _, t := range takes {
		if t.Outcome == Admitted || mayDeny(spent, t, s) {
			continue // and a failed take cannot have spent tokens that the key did not have
		}
		if t.Outcome == Denied {
			lost++
		}
		spend(t)
	}
	return lost
}

// A spending happened between two instants.
type spending struct {
	earliest, latest time.Time
	tokens           int
}

// all are the tokens of a change: it leaves no token of any limit.
const all = 1 << 20

// mayDeny reports whether one of the keys may have had no token for the take.
func mayDeny(spent map[string][]spending, t Take, s Shape) bool {
	for _, c := range t.Charges {
		if mayBeSpent(spent[c.Key], t, c.Limit, s) {
			return true
		}
	}
	return false
}

// mayBeSpent checks every window that ends with the take and starts with a spending.
func mayBeSpent(spent []spending, t Take, l Limit, s Shape) bool {
	spent = relevant(spent, t)
	for _, start := range spent {
		total := 0
		for _, other := range spent {
			if !other.latest.Before(start.latest) {
				total += min(other.tokens, l.Capacity)
			}
		}
		if l.mayDeny(s, t.Called.Sub(start.latest), total, 1) {
			return true
		}
	}
	return false
}

// relevant returns the spendings before the end of a take and after the last change before it.
func relevant(spent []spending, t Take) []spending {
	var change time.Time
	for _, s := range spent {
		if s.tokens == all && !s.earliest.After(t.Done) && s.earliest.After(change) {
			change = s.earliest
		}
	}
	var kept []spending
	for _, s := range spent {
		if !s.earliest.After(t.Done) && !s.latest.Before(change) {
			kept = append(kept, s)
		}
	}
	return kept
}
