// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A client sends one request, and goes on with what it got. The mutex of the simulation guards the
// fields that change.
type client struct {
	sim     *simulation
	number  int
	kind    clientKind
	request mete.Request
	keys    int // of the request

	node    *node // the first one
	busy    bool  // a call is running
	over    bool  // nothing is left to do
	crashed bool  // its node crashed during a call
	unknown bool  // a call had no answer of the store, and may still reach it

	decision    *mete.Decision
	err         error
	reservation *mete.Reservation
	hold        string
	until       bucket.Instant // it has a slot until then, if above 0
	releasing   bool
}

type clientKind uint8

const (
	takes clientKind = iota
	takesUpTo
	reserves
	holds
	occupies // a slot
	charges
	waits
	administers
	transacts // a take in a transaction
	clientKinds
)

// kinds are the kinds of clients of a run. An administrator and requests that end later do not go together: a refund by
// an administrator during a request returns its tokens twice (see doc/holds.md).
func (s *simulation) kinds() []clientKind {
	switch {
	case s.plan.world == leaseWorld:
		return []clientKind{takes}
	case s.plan.world == shardsWorld: // a cancellation returns tokens to any shard, which the ledger does not follow
		return []clientKind{takes, takes, takesUpTo}
	case s.plan.world == versionsWorld:
		return []clientKind{takes, takes, takesUpTo, reserves}
	case s.plan.world == transactionsWorld:
		return []clientKind{takes, takes, takesUpTo, transacts, transacts}
	case s.plan.world.isOutage():
		return []clientKind{takes, takes, takes, takesUpTo}
	case s.plan.seed%4 == 0:
		return []clientKind{takes, takes, takesUpTo, occupies, charges, administers}
	case s.stepsBack():
		return []clientKind{takes, takes, takesUpTo, reserves, reserves, occupies, occupies, charges, waits}
	}
	return []clientKind{takes, takes, takesUpTo, reserves, reserves, holds, holds, occupies, occupies, charges, waits}
}

// stepsBack reports whether the clock of the store can run back. Such runs have no holds: an expired hold is open again if
// the clock runs back before the store has noticed. They have no administrator: a full bucket has no time.
func (s *simulation) stepsBack() bool { return s.plan.seed%4 == 1 }

// newClient returns a client with a random request.
func (s *simulation) newClient(r *rand.Rand) *client {
	s.clients = append(s.clients, &client{sim: s, number: len(s.clients) + 1})
	c := s.clients[len(s.clients)-1]
	kinds := s.kinds()
	c.kind = kinds[r.IntN(len(kinds))]
	attrs := mete.Attrs{}
	if r.IntN(8) > 0 || s.plan.world == leaseWorld {
		attrs["header:a"] = fmt.Sprint(r.IntN(2))
		c.keys++
	}
	if r.IntN(3) == 0 && s.plan.world != leaseWorld {
		attrs["header:b"] = fmt.Sprint(r.IntN(2))
		c.keys++
	}
	if s.plan.world == overridesWorld && r.IntN(3) == 0 {
		attrs["header:a"] = "" // the same bucket as without it
	}
	if c.kind == takes && (s.plan.world == exactWorld || s.plan.world == refillWorld) && r.IntN(4) == 0 {
		c.addOwnCharges(r)
	}
	if c.kind == occupies || c.kind == holds && r.IntN(3) == 0 {
		attrs["header:s"] = "x"
		c.request.Slot = bucket.SlotID{byte(c.number), byte(c.number >> 8), 1}
	}
	c.request.Attributes = attrs
	c.request.Cost = mete.Tokens(1 + r.IntN(1+r.IntN(8)))
	if c.kind != occupies && s.plan.world != leaseWorld && r.IntN(2) == 0 {
		c.request.ID = fmt.Sprintf("request-%d", c.number)
	}
	if c.kind == reserves && s.plan.world != versionsWorld && r.IntN(4) == 0 {
		c.request.MaxWait = time.Duration(r.IntN(1000)) * time.Millisecond
	}
	return c
}

// run runs call as one action of the client, in a goroutine.
func (c *client) run(n *node, call func(context.Context, *node)) {
	c.busy = true
	c.sim.operations++
	c.sim.running++
	ctx := context.WithValue(context.Background(), clientKey{}, c.number)
	go func() {
		call(ctx, n)
		c.sim.mu.Lock()
		defer c.sim.mu.Unlock()
		c.busy = false
		c.crashed = c.crashed || n.dead
		c.sim.running--
	}()
}

// begin sends the request.
func (c *client) begin(n *node, r *rand.Rand) {
	c.node = n
	admin := r.IntN(2)
	options := mete.HoldOptions{TTL: time.Duration(1+r.IntN(20_000)) * time.Millisecond, Refund: r.IntN(2) == 0}
	c.run(n, func(ctx context.Context, n *node) {
		var d mete.Decision
		var err error
		committed := true
		switch c.kind {
		case takes, occupies:
			d, err = n.limiter.Take(ctx, c.request)
		case takesUpTo:
			d, err = n.limiter.TakeUpTo(ctx, c.request)
		case charges:
			d, err = n.limiter.Charge(ctx, c.request)
		case waits:
			ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
			defer cancel()
			d, err = n.limiter.Wait(ctx, c.request)
		case reserves:
			var res *mete.Reservation
			if res, err = n.limiter.Reserve(ctx, c.request); err == nil {
				d, c.reservation = res.Decision, res
			}
		case holds:
			var h *mete.Hold
			if h, err = n.limiter.Hold(ctx, c.request, options); err == nil {
				d, c.hold = h.Decision, h.ID
			}
		case transacts:
			d, committed, err = c.transact(ctx, n, admin == 0)
		case administers:
			if admin == 0 {
				err = n.limiter.Reset(ctx, c.request)
			} else {
				err = n.limiter.Refund(ctx, c.request)
			}
		}
		c.sim.mu.Lock()
		defer c.sim.mu.Unlock()
		c.decision, c.err = &d, err
		if err != nil || !committed {
			c.decision = nil
		}
		c.over = !committed
		if committed || err != nil {
			c.sim.judge(c, n)
		}
	})
}

// canProceed reports whether the client has something left to do.
func (c *client) canProceed() bool {
	return !c.busy && !c.over && !c.crashed && c.err == nil && (!c.node.dead || c.decision.Slots == nil && c.reservation == nil)
}

// mayRepeat reports whether the client may repeat its request. If a single node has denied a request whose answer was lost,
// the store may still admit it later, and its repetition returns that. Local requests may have got its tokens.
func (c *client) mayRepeat() bool { return !c.decision.Degraded || c.sim.plan.world != singleWorld }

// proceed goes on with a request.
func (c *client) proceed(n *node, r *rand.Rand) {
	d, amount, what := c.decision, mete.Tokens(r.IntN(1+2*int(c.request.Cost))), r.IntN(4)
	switch {
	case d == nil:
		c.over = true
	case c.request.ID != "" && (d.Degraded && !c.sim.plan.world.isOutage() || what == 0 && c.mayRepeat()) && c.kind == takes && c.sim.now() < c.sim.born[c.number].Add(time.Minute):
		c.request = retried(c.request)
		c.begin(n, r) // again, perhaps at another node
	case c.reservation != nil:
		c.run(n, func(ctx context.Context, _ *node) {
			var err error
			if what == 0 {
				err = c.reservation.Cancel(ctx)
			} else {
				err = c.reservation.Settle(ctx, amount)
			}
			c.end(err)
		})
	case c.hold != "" && !c.releasing:
		c.run(n, func(ctx context.Context, n *node) {
			var err error
			switch what {
			case 0:
				_, err = n.limiter.Renew(ctx, c.hold, time.Duration(1+amount)*time.Second)
				if err == nil {
					return
				}
			case 1:
				_, err = n.limiter.Release(ctx, c.hold)
			default:
				_, err = n.limiter.Settle(ctx, c.hold, amount)
			}
			c.end(err)
		})
	case d.Slots != nil && what == 0 && !c.releasing:
		c.run(n, func(ctx context.Context, _ *node) {
			err := d.Slots.Renew(ctx)
			c.sim.mu.Lock()
			defer c.sim.mu.Unlock()
			switch {
			case err == nil:
				c.until = c.sim.slotEnd(c)
			case errors.Is(err, mete.ErrSlotEnded):
				c.until = 0
			}
		})
	case d.Slots != nil:
		c.until, c.releasing = 0, true
		c.run(n, func(ctx context.Context, _ *node) {
			if d.Slots.Release(ctx) == nil {
				c.sim.mu.Lock()
				defer c.sim.mu.Unlock()
				c.over = true
			}
		})
	default:
		c.over = true
	}
}

// end ends a reservation or a hold. After an error that left it open, the client tries again.
func (c *client) end(err error) {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	again := err != nil && c.reservation != nil && (mete.Spent(err) == mete.NotSpent || errors.Is(err, mete.ErrDebt))
	again = again || err != nil && c.hold != "" && !errors.Is(err, store.ErrHoldEnded) && !errors.Is(err, store.ErrHoldUnknown)
	if again {
		return
	}
	c.reservation, c.hold = nil, ""
	if c.over = c.decision.Slots == nil; !c.over {
		c.releasing = true // Settle and Cancel of a reservation release them; of a hold, the client does
	}
}

// judge compares the answer of a client with the ledger.
func (s *simulation) judge(c *client, n *node) {
	if c.err != nil {
		if !errors.Is(c.err, context.DeadlineExceeded) && c.kind != administers && c.kind != holds && c.kind != waits {
			s.ledger.fault("client %d: %v", c.number, c.err)
		}
		c.unknown = true
		return
	}
	d := c.decision
	if c.kind == administers || n.dead {
		return
	}
	if d.Slots != nil && !d.Degraded {
		c.until = s.slotEnd(c)
	}
	s.ledger.note("client %d receives: allowed %v, degraded %v, taken %v", c.number, d.Allowed, d.Degraded, d.Taken)
	s.countGranted(c, d)
	switch {
	case d.Degraded && d.Allowed:
		s.counts["admitted locally"]++
	case d.Degraded:
		s.counts["degraded denials"]++
	case d.Allowed:
		s.counts["admitted"]++
	default:
		s.counts["denied"]++
	}
	if d.Degraded {
		c.unknown = true
		return
	}
	limits := d.Limits()
	for i := range limits {
		st := &limits[i]
		if st.Rule.Name == "s" {
			continue
		}
		paid := s.ledger.paid[payment{c.number, st.Key}]
		late := bucket.Tokens(0) // paid by an earlier call that reached the store after the denied one
		if c.unknown {
			late = s.ledger.late[payment{c.number, st.Key}]
		}
		switch {
		case d.Allowed && (paid < st.Cost || c.kind == takes && c.request.ID != "" && paid > st.Cost):
			s.ledger.fault("G2: client %d was admitted and has paid %v of %v in %s", c.number, paid, st.Cost, st.Key)
		case !d.Allowed && paid > late:
			s.ledger.fault("G2: client %d was denied and has paid %v in %s", c.number, paid, st.Key)
		}
	}
	if d.Allowed && strings.HasPrefix(d.Reason, "store") {
		s.ledger.fault("G8: client %d was admitted with reason %q", c.number, d.Reason)
	}
}

// slotEnd returns the end of the client's slot in the ledger, and checks the number of holders.
func (s *simulation) slotEnd(c *client) (end bucket.Instant) {
	for _, held := range s.ledger.slots {
		end = max(end, held[c.request.Slot])
	}
	holders, now := 1, max(s.now(), s.ledger.slotTime)
	for _, other := range s.clients {
		if other != c && other.until > now && !other.releasing {
			holders++
		}
	}
	if end > now && holders > 3 {
		s.ledger.fault("G13: %d clients hold an unexpired slot, want at most 3", holders)
	}
	return end
}
