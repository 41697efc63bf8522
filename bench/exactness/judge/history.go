// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"sync"
	"time"
)

// An Outcome is the answer to a take.
type Outcome int

const (
	Admitted Outcome = iota
	Denied
	Failed // an error: the tokens may be spent, and the caller was not admitted
)

// A Charge takes one token of a key under a limit.
type Charge struct {
	Key   string
	Limit Limit
}

// A Take is one call of a limiter with the times of the call and of the answer. It is admitted if all its charges are.
type Take struct {
	Charges      []Charge
	Called, Done time.Time
	Outcome      Outcome
}

// A History is safe for concurrent use.
type History struct {
	mu      sync.Mutex
	takes   []Take
	changes []change
}

// A change gives a key an empty bucket from an instant on.
type change struct {
	key string
	at  time.Time
}

// Add records a take.
func (h *History) Add(t Take) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takes = append(h.takes, t)
}

// Changed records that the limit of a key changed. From then on, the promise for the key is the promise of a client
// with no token left under the new limit.
func (h *History) Changed(key string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, change{key, at})
}

// takesByCall returns the takes in the order of the calls.
func (h *History) takesByCall() []Take {
	h.mu.Lock()
	defer h.mu.Unlock()
	takes := slices.Clone(h.takes)
	slices.SortStableFunc(takes, func(a, b Take) int { return a.Called.Compare(b.Called) })
	return takes
}
