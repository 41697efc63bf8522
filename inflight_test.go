// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A heldWire delays the answer to each take until its gate opens.
type heldWire struct {
	*wire
	mu      sync.Mutex
	holding bool
	asked   chan chan struct{} // receives the gate of each held take
}

func (h *heldWire) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	dst, allowed, err := h.wire.Take(ctx, dst, charges, mode)
	h.mu.Lock()
	holding := h.holding
	h.mu.Unlock()
	if holding {
		gate := make(chan struct{})
		h.asked <- gate
		<-gate
	}
	return dst, allowed, err
}

// A flight is a take of one token. Its answer waits for the gate.
type flight struct {
	gate  chan struct{}
	admit chan bool
}

func (f flight) land() (admitted bool) {
	close(f.gate)
	return <-f.admit
}

// newHeldNode returns a node and its wire, which holds nothing yet.
func newHeldNode(t *testing.T, rules string) (*node, *heldWire) {
	t.Helper()
	clock := storetest.NewClock()
	h := &heldWire{wire: &wire{Store: storetest.NewModel(clock.Now)}, asked: make(chan chan struct{})}
	l, err := mete.New(h, load(t, `{"rules": [`+rules+`]}`), mete.Config{Local: storetest.NewModel(clock.Now), Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &node{t, l, h.wire}, h
}

// depart sends a take to a store with this fault.
func (n *node) depart(h *heldWire, f fault) flight {
	n.line.cut(f)
	h.hold(true)
	defer h.hold(false)
	admit := make(chan bool, 1)
	go func() {
		d, err := n.Take(n.Context(), mete.Request{})
		if err != nil {
			n.Error(err)
		}
		admit <- d.Allowed
	}()
	return flight{<-h.asked, admit}
}

func (h *heldWire) hold(holding bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holding = holding
}

// inFlight returns a node that has made so many takes of one token, and has another one in flight for each fault. land lets
// those return and counts the admitted ones.
func inFlight(t *testing.T, rules string, answered int, faults ...fault) (n *node, land func() (admitted int)) {
	t.Helper()
	n, h := newHeldNode(t, rules)
	for range answered {
		n.take(1)
	}
	var flights []flight
	for _, f := range faults {
		flights = append(flights, n.depart(h, f))
	}
	return n, func() (admitted int) {
		for _, f := range flights {
			close(f.gate)
		}
		for _, f := range flights {
			if <-f.admit {
				admitted++
			}
		}
		return admitted
	}
}

// The store may have charged takes in flight: a local bucket that starts meanwhile must not grant their tokens
// again.
func TestLocal_CountsTakesInFlight(t *testing.T) {
	n, land := inFlight(t, localRule, 0, slices.Repeat([]fault{up}, 7)...)
	n.line.cut(down)
	if got := n.drain(); got != 3 {
		t.Errorf("%d admitted locally beside 7 of 10 in flight, want 3", got)
	}
	if got := land(); got != 7 {
		t.Errorf("%d of 7 in flight admitted", got)
	}
	if got := n.drain(); got != 0 {
		t.Errorf("%d more admitted, want 0", got)
	}
	n.line.cut(up)
	if err := n.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := n.Stats(); s.SpentLocally != 3*bucket.Token || s.Charged != 3*bucket.Token || s.Unsettled != 0 {
		t.Errorf("stats %+v, want 3 spent and charged", s)
	}
	if d := n.take(1); d.Allowed || d.Degraded {
		t.Errorf("the 11th of 10: %+v", d)
	}
}

// Takes in flight that fail get the tokens that the local bucket has withheld.
func TestLocal_HoldsForTakesInFlight(t *testing.T) {
	for name, f := range map[string]fault{"not spent": down, "maybe spent": silent} {
		t.Run(name, func(t *testing.T) {
			n, land := inFlight(t, localRule, 0, slices.Repeat([]fault{f}, 8)...)
			n.line.cut(down)
			if got := n.drain(); got != 2 {
				t.Errorf("%d admitted locally beside 8 of 10 in flight, want 2", got)
			}
			if got := land(); got != 8 {
				t.Errorf("%d admitted of 8 that were in flight and failed", got)
			}
			if got := n.drain(); got != 0 {
				t.Errorf("%d more admitted, want 0", got)
			}
			n.line.cut(up)
			if err := n.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			if s := n.Stats(); s.SpentLocally != 10*bucket.Token || s.Charged != 10*bucket.Token || s.Unsettled != 0 {
				t.Errorf("stats %+v, want 10 spent and charged", s)
			}
		})
	}
}

// More takes are in flight than the local bucket has room for. The store admits 6 of them. Of the 6 that fail, the first local
// decisions must leave the tokens of the others.
func TestLocal_MoreTakesInFlightThanTokens(t *testing.T) {
	rule := `{"name": "all", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rps": 1, "burst": 10, "max_reserved": 0}}`
	n, land := inFlight(t, rule, 2, slices.Concat(slices.Repeat([]fault{up}, 6), slices.Repeat([]fault{down}, 6))...)
	n.line.cut(down)
	if d := n.take(1); d.Allowed {
		t.Error("admitted locally beside 12 takes in flight of 8 tokens")
	}
	if got := land(); got != 8 {
		t.Errorf("%d of 12 takes are admitted by 8 tokens, want 8", got)
	}
}

// A take of an older policy opens the local bucket. The takes in flight of the new policy have another room there.
func TestLocal_TakesInFlightOfAnotherVersion(t *testing.T) {
	for _, c := range []struct {
		before, after                       string
		reachingStore, failing, ofNewBucket int
	}{
		{`"burst": 2, "max_reserved": 0`, `"burst": 20, "max_reserved": 0`, 12, 18, 20},
		{`"burst": 30, "max_reserved": 0`, `"burst": 10, "max_reserved": 0`, 8, 10, 10},
		{`"burst": 30`, `"burst": 10`, 8, 10, 10},
	} {
		rule := func(limit string) string {
			return `{"name": "all", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rps": 1, ` + limit + `}}`
		}
		n, h := newHeldNode(t, rule(c.before))
		first := n.depart(h, down)
		if err := n.SetPolicy(load(t, `{"rules": [`+rule(c.after)+`]}`)); err != nil {
			t.Fatal(err)
		}
		var flights []flight
		for _, f := range slices.Concat(slices.Repeat([]fault{down}, c.failing), slices.Repeat([]fault{up}, c.reachingStore)) {
			flights = append(flights, n.depart(h, f))
		}
		first.land()
		admitted := 0
		for _, f := range flights {
			if f.land() {
				admitted++
			}
		}
		if admitted > c.ofNewBucket {
			t.Errorf("%s, then %s: %d are admitted under the new limit, want at most %d", c.before, c.after, admitted, c.ofNewBucket)
		}
	}
}

// Takes in flight count only for their own key, and only until the answer.
func TestLocal_FlightsEnd(t *testing.T) {
	n, land := inFlight(t, localRule, 0, slices.Repeat([]fault{up}, 4)...)
	if got := land(); got != 4 {
		t.Fatalf("%d of 4 admitted", got)
	}
	n.line.cut(down)
	if got := n.drain(); got != 6 {
		t.Errorf("%d admitted locally after 4 of 10, want 6", got)
	}
}

// After a local refund and a lost answer, later costs are still due.
func TestRelease_BesideALostAnswer(t *testing.T) {
	n, land := inFlight(t, localRule, 0, slices.Repeat([]fault{down}, 8)...)
	n.line.cut(down)
	n.take(1) // the account holds 8 for the takes in flight
	n.line.cut(lossy)
	n.take(1) // the charge of 1 arrives
	n.line.cut(down)
	if got := land(); got != 8 {
		t.Errorf("%d of 8 takes admitted after their flight, want all", got)
	}
	n.line.cut(up)
	if err := n.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := n.drain(); after != 0 {
		t.Errorf("%d more of 10 admitted after the outage, want 0", after)
	}
}
