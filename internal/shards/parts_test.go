// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A parted store takes each bucket in a separate part, like a cluster with each bucket on another node. If a
// part fails, the earlier parts are undone.
type parted struct {
	mete.Store
	backwards bool // the parts come in the other order
	parts     int  // parts that were started, without dry runs
	fails     int  // the part that fails, from 1; 0 for none
	late      bool // the failing part is made all the same, and its answer is lost
}

func (p *parted) TakesInParts() bool { return true }

func (p *parted) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if mode.DryRun {
		return p.Store.Take(ctx, dst, charges, mode)
	}
	order := make([]int, len(charges))
	for i := range order {
		order[i] = i
	}
	if p.backwards {
		slices.Reverse(order)
	}
	snaps := make([]bucket.Snapshot, len(charges))
	undo := func(parts []int) {
		for _, i := range parts {
			if err := p.Store.Refund(ctx, []mete.Refund{{Charge: charges[i]}}, ""); err != nil {
				panic(err)
			}
		}
	}
	for n, i := range order {
		p.parts++
		if p.parts == p.fails {
			if p.late {
				if _, _, err := p.Store.Take(ctx, nil, charges[i:i+1], mode); err != nil {
					panic(err)
				}
			}
			undo(order[:n])
			return dst, false, &mete.StoreError{Op: "take", Store: "parted", Spent: mete.MaybeSpent, Err: errors.New("the answer is lost")}
		}
		snap, allowed, err := p.Store.Take(ctx, nil, charges[i:i+1], mode)
		if err != nil {
			return dst, false, err
		}
		snaps[i] = snap[0]
		if !allowed {
			undo(order[:n])
			all, _, err := p.Store.Take(ctx, dst, charges, mete.Mode{DryRun: true, MaxWait: mode.MaxWait})
			return all, false, err
		}
	}
	return append(dst, snaps...), true, nil
}

// If any part of a take with an ID fails, a retry is admitted and its cost is charged.
func TestSharded_RetryIsNeverUncharged(t *testing.T) {
	for _, backwards := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			for _, tokens := range []bucket.Tokens{1, 15, 45} { // of one shard, of two, of all
				for fails := 1; ; fails++ {
					clock := storetest.NewClock()
					shared := &parted{Store: storetest.NewModel(clock.Now), backwards: backwards, late: late, fails: fails}
					if !retried(t, shared, tokens) {
						break // there are no more parts
					}
				}
			}
		}
	}
}

// retried takes tokens under an ID until they are admitted, and once more. It reports whether a part has failed.
func retried(t *testing.T, shared *parted, tokens bucket.Tokens) bool {
	t.Helper()
	where := fmt.Sprintf("%d tokens, part %d fails, made all the same: %v, backwards: %v", tokens, shared.fails, shared.late, shared.backwards)
	s := shards.New(shared, func(int) int { return 0 })
	c := hot(t)
	c.Limit, c.Cost = tokensPerHour(t, 100), tokens*bucket.Token
	user := store.Charge{Key: "user", Limit: tokensPerHour(t, 100), Cost: bucket.Token}
	failed := 0
	for attempt := 1; attempt <= 3; attempt++ {
		_, allowed, err := s.Take(t.Context(), nil, []store.Charge{c, user}, mete.Mode{ID: "a"})
		switch {
		case err != nil:
			if failed++; mete.Spent(err) != mete.MaybeSpent {
				t.Errorf("%s: error %v; want one that may have spent", where, err)
			}
		case !allowed:
			t.Errorf("%s: attempt %d is denied", where, attempt)
		}
	}
	if failed > 1 {
		t.Errorf("%s: %d attempts failed, want one at most", where, failed)
	}
	free, once := c, user
	free.Cost, once.Cost = 0, 0
	snaps, _, err := s.Take(t.Context(), nil, []store.Charge{free, once}, mete.Mode{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, cost := range []bucket.Tokens{c.Cost, user.Cost} {
		missing := snaps[i].Missing()
		if missing < cost || failed == 0 && missing != cost {
			t.Errorf("%s: %s misses %v after it was admitted, want %v", where, []string{"hot", "user"}[i], missing, cost)
		}
	}
	return failed > 0
}

func tokensPerHour(t *testing.T, capacity int64) bucket.Limit {
	t.Helper()
	return tokens(t, capacity, oneAnHour)
}

// Two concurrent attempts with one ID both pay, and one of them refunds.
func TestSharded_OneIDInParts(t *testing.T) {
	clock := storetest.NewClock()
	shared := &parted{Store: storetest.NewModel(clock.Now)}
	c := hot(t)
	c.Limit = tokensPerHour(t, 100)
	var s mete.Store
	between := &hooked{Store: shared}
	s = shards.New(between, func(int) int { return 0 })
	between.hook = func() { // after the first has paid
		between.hook = nil
		other := shards.New(shared, func(int) int { return 0 })
		if _, allowed, err := other.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{ID: "a"}); err != nil || !allowed {
			t.Errorf("the second attempt: %v, error %v", allowed, err)
		}
	}
	snaps, allowed, err := s.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{ID: "a"})
	if err != nil || !allowed || snaps[0].Cost != c.Cost {
		t.Errorf("the first attempt: %v, %v, error %v", allowed, snaps, err)
	}
	c.Cost = 0
	if snaps, _, err = s.Take(t.Context(), nil, []store.Charge{c}, mete.Mode{DryRun: true}); err != nil || snaps[0].Missing() != bucket.Token {
		t.Errorf("the bucket misses %v, error %v; want 1", snaps[0].Missing(), err)
	}
}

// A hooked store calls hook after the first take that spends.
type hooked struct {
	mete.Store
	hook func()
}

func (h *hooked) Unwrap() mete.Store { return h.Store }

func (h *hooked) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	dst, allowed, err := h.Store.Take(ctx, dst, charges, mode)
	if hook := h.hook; hook != nil && !mode.DryRun {
		hook()
	}
	return dst, allowed, err
}
