// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

const errEnded = "the hold has ended"

// slotVersion is the version of the limit of slots. The others are versions of the limits of tokens.
const slotVersion = 3

// testLimits returns the limits of all histories, by version. A token refills in a year, so amounts of thousandths stay exact.
func testLimits() []limit {
	return []limit{{Capacity: 40*token + 4}, {Capacity: 60*token + 5}, {Capacity: 25*token + 6, Debt: 4 * token}, slotVersion: {Slots: 3}}
}

// compile returns the limit of the store.
func (l limit) compile() (bucket.Limit, error) {
	spec := bucket.Spec{Capacity: bucket.Tokens(l.Capacity), Rate: bucket.Rate{Tokens: bucket.Token, Per: 365 * 24 * time.Hour}}
	debt := bucket.Tokens(l.Debt)
	spec.MaxReserved = &debt
	if l.Slots > 0 {
		spec = bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Tokens(l.Slots) * bucket.Token, Per: lease * time.Microsecond}}
	}
	compiled, _, err := spec.Compile()
	return compiled, err
}

// A client calls a store, one operation after another.
type client struct {
	*run
	number int
	store  store.Store
	rand   *rand.Rand
	takes  []admitted     // that may be canceled
	taken  []bucket.Taken // of the cancellation that is next
	calls  []*op          // with an ID or a hold, which may be repeated
	slots  []charge       // that may be held
	made   int            // names
}

// An admitted take can be canceled once.
type admitted struct {
	charges []charge
	taken   []bucket.Taken
}

func (c *client) name(kind string) string {
	c.made++
	return fmt.Sprintf("%s%d%s%04d", kind, c.number, strings.Repeat("x", 12), c.made)
}

// amount returns a random amount up to most.
func (c *client) amount(most int64) int64 { return grain * (1 + c.rand.Int64N((most+grain-1)/grain)) }

// next returns a random operation.
func (c *client) next() *op {
	r := c.rand
	switch n := r.IntN(100); {
	case n < 34:
		o := &op{Kind: take, Charges: c.charges(3), UpTo: r.IntN(6) == 0 && !c.world.parts}
		if r.IntN(4) == 0 && c.world.slots && !o.UpTo {
			if o.Charges = append(o.Charges, c.slot()); c.world.single {
				o.Charges = o.Charges[1:]
			}
		}
		if o.UpTo {
			for i := range o.Charges {
				o.Charges[i].Cost = o.Charges[0].Cost
			}
		}
		if r.IntN(16) > 0 {
			o.ID = c.name("id")
		}
		return o
	case n < 42 && len(c.calls) > 0:
		again := *c.calls[r.IntN(len(c.calls))]
		again.Answer, again.again = answer{}, true
		return &again
	case n < 52:
		return &op{Kind: peek, Charges: c.charges(3)}
	case n < 57:
		o := &op{Kind: force, Charges: c.charges(2)}
		if r.IntN(16) > 0 {
			o.ID = c.name("id")
		}
		return o
	case n < 65 && len(c.takes) > 0:
		return c.cancelTake()
	case n < 71:
		o := &op{Kind: refund, Charges: c.charges(2)}
		if r.IntN(16) > 0 {
			o.ID = c.name("refund")
		}
		return o
	case n < 77 && len(c.slots) > 0:
		i := r.IntN(len(c.slots))
		o := &op{Kind: release, Charges: c.slots[i : i+1 : i+1]}
		if r.IntN(4) == 0 {
			o.Kind = renewSlot
		} else if r.IntN(4) > 0 { // else it may be released twice
			c.slots = slices.Delete(slices.Clone(c.slots), i, i+1)
		}
		return o
	case n < 82:
		o := &op{Kind: reset}
		for _, ch := range c.charges(2) {
			o.Charges = append(o.Charges, charge{Key: ch.Key, Version: ch.Version})
		}
		return o
	case n < 91 && c.world.holds:
		return c.newHold()
	case c.world.holds:
		if id := c.anyHold(r); id != "" {
			if r.IntN(5) == 0 {
				return &op{Kind: renewHold, Hold: id, TTL: lease}
			}
			return &op{Kind: settle, Hold: id, Amount: c.amount(5 * token)}
		}
	}
	return &op{Kind: take, Charges: c.charges(2), ID: c.name("id")}
}

// charges returns costs for up to most keys. All clients change the limits of keys during the run, at different times.
func (c *client) charges(most int) []charge {
	r := c.rand
	if c.world.single {
		most = 1
	}
	var all []charge
	for _, k := range r.Perm(len(c.world.keys))[:1+r.IntN(most)] {
		ch := charge{Key: c.world.keys[k], Cost: c.amount(4 * token)}
		if c.world.versions && k > 0 {
			ch.Version = c.policy()
		}
		all = append(all, ch)
	}
	slices.SortFunc(all, func(a, b charge) int { return strings.Compare(a.Key, b.Key) })
	return all
}

func (c *client) slot() charge {
	ch := charge{Key: c.world.slotKey, Version: slotVersion, Cost: token, Slot: fmt.Sprintf("%032x", uint64(c.number)<<32|uint64(c.rand.IntN(3)+1))}
	if !slices.Contains(c.slots, ch) {
		c.slots = append(c.slots, ch)
	}
	return ch
}

func (c *client) cancelTake() *op {
	i := c.rand.IntN(len(c.takes))
	t := c.takes[i]
	c.takes = slices.Delete(c.takes, i, i+1)
	o := &op{Kind: cancel, Charges: slices.Clone(t.charges), ID: c.name("cancel")}
	c.taken = t.taken
	for i := range o.Charges {
		if c.rand.IntN(3) == 0 {
			o.Charges[i].Cost = c.amount(o.Charges[i].Cost)
		}
	}
	return o
}

func (c *client) newHold() *op {
	o := &op{Kind: hold, Charges: c.charges(3), Hold: c.name("hold"), TTL: lease, Refund: c.rand.IntN(2) == 0}
	for i := range o.Charges {
		switch ch := &o.Charges[i]; c.rand.IntN(4) {
		case 0:
			ch.Kept = true
		case 1:
			ch.Fixed = c.amount(ch.Cost)
		}
	}
	if c.rand.IntN(4) == 0 && c.world.slots && !c.world.single {
		o.Charges = append(o.Charges, c.slot())
	}
	return o
}

// do calls the store, and records the operation with its answer.
func (c *client) do(o *op) {
	o.Client = c.number
	end := c.begin(o)
	o.Call = c.now()
	snaps, err := c.call(o)
	o.Return = c.now()
	end()
	switch {
	case errors.Is(err, store.ErrHoldEnded):
		o.Answer = answer{Err: errEnded}
	case err != nil:
		o.Answer = answer{Err: err.Error(), Unknown: store.Spent(err) == store.MaybeSpent}
	}
	for i := range snaps {
		s := &snaps[i]
		o.Answer.Snaps = append(o.Answer.Snaps, snap{s.Allowed, int64(s.Cost), int64(s.Missing())})
	}
	c.record(o)
	if again := *o; !o.again && (o.ID != "" && o.Kind != cancel || o.Kind == hold) {
		c.calls = append(c.calls, &again)
	}
	if o.Answer.Allowed && !o.again && (o.Kind == take || o.Kind == force) {
		c.remember(o, snaps)
	}
	if o.Answer.Unknown && (o.ID != "" || o.Hold != "") && !c.Failed() {
		again := *o
		again.Answer, again.again = answer{}, true
		c.do(&again)
	}
}

// remember keeps the costs of an admitted take.
func (c *client) remember(o *op, snaps []bucket.Snapshot) {
	var a admitted
	for i, ch := range o.Charges {
		if taken := snaps[i].Taken(); ch.Slot == "" && taken.Cost > 0 {
			ch.Cost = int64(taken.Cost)
			a.charges, a.taken = append(a.charges, ch), append(a.taken, taken)
		}
	}
	if len(a.charges) > 0 {
		c.takes = append(c.takes, a)
	}
}

func (c *client) call(o *op) (snaps []bucket.Snapshot, err error) {
	if c.world.clock != nil {
		c.world.clock.RLock()
		defer c.world.clock.RUnlock()
	}
	ctx, a := context.Background(), &o.Answer
	charges := make([]store.Charge, len(o.Charges))
	for i, ch := range o.Charges {
		charges[i] = store.Charge{Key: c.prefix + ch.Key, Limit: c.limits[ch.Version], Cost: bucket.Tokens(ch.Cost)}
		if ch.Slot != "" {
			if charges[i].Slot, err = bucket.ParseSlotID(ch.Slot); err != nil {
				return nil, err
			}
		}
	}
	holder, _ := store.As[store.Holder](c.store)
	id := o.ID
	if id != "" {
		id = c.prefix + id
	}
	switch o.Kind {
	case take, peek, force, renewSlot:
		mode := mete.Mode{ID: id, UpTo: o.UpTo, DryRun: o.Kind == peek, Fresh: o.Kind == peek, Renew: o.Kind == renewSlot}
		if o.Kind == force {
			mode.MaxWait = bucket.Forced
		}
		snaps, a.Allowed, err = c.store.Take(ctx, nil, charges, mode)
	case refund, cancel, release:
		refunds := make([]mete.Refund, len(charges))
		for i := range charges {
			if refunds[i].Charge = charges[i]; o.Kind == cancel {
				refunds[i].Taken = c.taken[i]
			}
		}
		err = c.store.Refund(ctx, refunds, id)
	case reset:
		keys := make([]string, len(charges))
		for i := range charges {
			keys[i] = charges[i].Key
		}
		err = c.store.Reset(ctx, keys)
	case hold:
		h := store.Hold{ID: c.holdID(o.Hold), TTL: time.Duration(o.TTL) * time.Microsecond, Refund: o.Refund}
		for _, ch := range o.Charges {
			h.Terms = append(h.Terms, store.Terms{Kept: ch.Kept, Fixed: bucket.Tokens(ch.Fixed)})
		}
		snaps, id, err = holder.Hold(ctx, nil, charges, mete.Mode{}, h)
		if a.Allowed = id != ""; a.Allowed {
			c.addHold(o.Hold, id)
		}
	case settle, renewHold:
		var status store.HoldStatus
		if o.Kind == settle {
			status, err = holder.Settle(ctx, c.storeID(o.Hold), bucket.Tokens(o.Amount))
		} else {
			status, err = holder.Renew(ctx, c.storeID(o.Hold), time.Duration(o.TTL)*time.Microsecond)
		}
		a.Status, a.Settled, a.Actual = status.State.String(), status.Settled, int64(status.Actual)
	}
	return snaps, err
}
