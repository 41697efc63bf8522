// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// A partedHold makes holds of a slot and a bucket on two nodes of a cluster.
type partedHold struct {
	*testing.T
	store        *redisstore.Store
	slot, bucket store.Charge
}

func (h *partedHold) hold(ctx context.Context, id string, number byte, cost bucket.Tokens) (string, error) {
	slot, tokens := h.slot, h.bucket
	slot.Slot, tokens.Cost = bucket.SlotID{1, number}, cost
	charges := []store.Charge{slot, tokens}
	slices.SortFunc(charges, func(a, b store.Charge) int { return cmp.Compare(a.Key, b.Key) })
	_, id, err := h.store.Hold(ctx, nil, charges, mete.Mode{}, store.Hold{ID: id, TTL: time.Hour, Terms: make([]store.Terms, 2)})
	return id, err
}

func (h *partedHold) assertHolds(id string, number byte, cost bucket.Tokens, admitted bool) string {
	h.Helper()
	got, err := h.hold(h.Context(), id, number, cost)
	if err != nil || (got != "") != admitted {
		h.Errorf("hold %s of %v: id %q, error %v; want admitted %v", id, cost, got, err, admitted)
	}
	return got
}

// assertTaken checks the number of held slots and the missing tokens of the bucket.
func (h *partedHold) assertTaken(slots int, missing bucket.Tokens) {
	h.Helper()
	list, _, err := h.store.Slots(h.Context(), h.slot.Key, 10)
	if err != nil || len(list) != slots {
		h.Errorf("%d slots are held, want %d, error %v", len(list), slots, err)
	}
	if got := missingOf(h.T, h.store, h.bucket.Key); got != missing {
		h.Errorf("%v tokens are missing, want %v", got, missing)
	}
}

// TestHold_SlotOnAnotherNode holds a slot and a bucket on two nodes, in both orders of their parts. A part that denies or
// fails leaves nothing in the other part.
func TestHold_SlotOnAnotherNode(t *testing.T) {
	c := proctest.StartCluster(t, 3, 0)
	s, client := dialURL(t, "redis+cluster://"+c.Addrs[0], redisstore.Config{Timeout: faulttest.Patience})
	slots, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Token, Per: time.Hour}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	none := bucket.Tokens(0)
	solvent, _, err := bucket.Spec{Capacity: 4 * bucket.Token, Rate: bucket.Rate{Tokens: bucket.Token, Per: 100_000 * time.Hour}, MaxReserved: &none}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	first, last := twoNodes(c)
	for name, keys := range map[string][2]string{"slot first": {first, last}, "bucket first": {last, first}} {
		t.Run(name, func(t *testing.T) {
			if err := s.Reset(t.Context(), keys[:]); err != nil {
				t.Fatal(err)
			}
			h := partedHold{T: t, store: s, slot: store.Charge{Key: keys[0], Limit: slots, Cost: bucket.Token}, bucket: store.Charge{Key: keys[1], Limit: solvent}}
			prefix := "holdof0123456789" + keys[0]
			h.assertHolds(prefix+"a", 1, 5*bucket.Token, false)
			h.assertTaken(0, 0)
			// The last part fails because its key holds another value.
			if err := client.Do(t.Context(), client.B().Set().Key("tb:"+last).Value("other").Build()).Error(); err != nil {
				t.Fatal(err)
			}
			if id, err := h.hold(t.Context(), prefix+"a", 1, bucket.Token); err == nil || id != "" {
				t.Errorf("hold beside another value: id %q, error %v; want an error", id, err)
			}
			if err := s.Reset(t.Context(), []string{last}); err != nil {
				t.Fatal(err)
			}
			h.assertTaken(0, 0)
			id := h.assertHolds(prefix+"b", 1, bucket.Token, true)
			h.assertHolds(prefix+"c", 2, bucket.Token, false)
			h.assertTaken(1, bucket.Token)
			if same := h.assertHolds(prefix+"b", 1, bucket.Token, true); same != id {
				t.Errorf("the repeated hold has the ID %q, want %q", same, id)
			}
			// Another request takes the slot: the repeated hold is denied and stays.
			release := h.slot
			release.Slot = bucket.SlotID{1, 1}
			if err := s.Refund(t.Context(), []store.Refund{{Charge: release}}, ""); err != nil {
				t.Fatal(err)
			}
			other := h.assertHolds(prefix+"d", 2, bucket.Token, true)
			h.assertHolds(prefix+"b", 1, bucket.Token, false)
			h.assertTaken(1, 2*bucket.Token)
			// The bucket's part decides a settlement that it cannot owe, and the hold stays open.
			for _, x := range []struct {
				actual bucket.Tokens
				want   store.HoldState
			}{{9 * bucket.Token, store.HoldOpen}, {2 * bucket.Token, store.HoldSettled}} {
				if status, err := s.Settle(t.Context(), id, x.actual); err != nil || status.State != x.want || status.Settled != (x.want == store.HoldSettled) {
					t.Errorf("settle with %v: %+v, error %v; want %v", x.actual, status, err, x.want)
				}
			}
			if status, err := s.Settle(t.Context(), other, 0); err != nil || !status.Settled {
				t.Errorf("settle: %+v, error %v", status, err)
			}
			h.assertTaken(1, 2*bucket.Token)
		})
	}
}
