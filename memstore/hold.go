// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"container/heap"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// MaxHolds bounds the holds that a store keeps: open ones, and ended ones within [store.RetryHorizon]. At the bound,
// [Store.Hold] returns [store.ErrTooManyHolds].
const MaxHolds = 1 << 18

var _ store.Holder = (*Store)(nil)

// holds are the holds of a store. Its mutex is locked after the mutexes of shards.
type holds struct {
	mu   sync.Mutex // guards the fields below, and the fields of holds that change
	byID map[string]*held
	ends endings // of all holds: when the store can drop them

	due map[hash]*endings // of each bucket, by [hash.withoutNumber]: when its holds are refunded, also ended or renewed ones

	histories atomic.Int64 // the last ID of a history
}

// A held is a hold. Only state, expires, until and actual change.
type held struct {
	id      string
	hash    string // orders refunds at one instant; empty without refund
	refund  bool
	parts   []heldPart
	slots   []string          // keys of the slots that the hold took
	snaps   []bucket.Snapshot // the answer
	end     ending            // in holds.ends
	state   store.HoldState
	expires bucket.Instant
	until   bucket.Instant // the store drops it
	actual  bucket.Tokens  // the first amount of the settlement
}

// A heldPart is the charge of one bucket.
type heldPart struct {
	store.Charge
	own   hash
	terms store.Terms
	taken bucket.Taken
	over  bool   // it cost nothing, was refunded at its expiry, or its bucket was reset
	due   ending // in holds.due
}

// An ending is an instant at which a hold may end.
type ending struct {
	at   bucket.Instant
	hold *held
	part *heldPart // nil in holds.ends
}

// endings is a heap, ordered by instants and hashes of IDs.
type endings []*ending

func (e endings) Len() int      { return len(e) }
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)   { *e = append(*e, x.(*ending)) }
func (e endings) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].hold.hash < e[j].hold.hash
}

// find returns the index of a part, or -1.
func (e endings) find(p *heldPart) int {
	return slices.Index(e, &p.due)
}

func (e *endings) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}

// Hold implements [store.Holder]. A saved file does not contain holds: after a restart, they are unknown and keep their
// charge.
func (s *Store) Hold(_ context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	if err := h.Check(charges); err != nil {
		return dst, "", holdError(err)
	}
	locked := s.lockSlots(charges)
	defer s.unlockSlots(locked)
	began, buckets := s.instant(), charges
	if store.HasSlots(charges) {
		buckets = withoutSlots(charges)
	}
	tx := s.beginTake(buckets)
	if !s.open(tx, mete.Mode{}, false) {
		s.open(tx, mete.Mode{}, true)
	}
	defer s.finish(tx)
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	if old := s.holds.find(h.ID, tx.now); old != nil {
		s.rollBack(tx, true)
		return s.repeatHold(dst, old, charges, began)
	}
	if s.hasMaxHolds(tx) {
		s.rollBack(tx, true)
		return dst, "", holdError(store.ErrTooManyHolds)
	}
	mark, spill := len(dst), tx.spills()
	dst = slices.Grow(dst, len(charges))[:mark+len(charges)]
	free := s.peekSlots(dst[mark:], charges, began, mete.Mode{})
	s.countSpills(spill, false)
	var beside []bucket.Snapshot // of the buckets
	if len(buckets) == len(charges) {
		beside = dst[mark:mark]
	}
	snaps, allowed := tx.decide(beside, mode.MaxWait, spill)
	if hasPenalty(buckets) && !s.applyPenalties(tx, buckets, snaps, mete.Mode{MaxWait: mode.MaxWait}) {
		allowed = false
	}
	if !allowed || !free {
		s.rollBack(tx, false)
		showBuckets(dst[mark:], charges, snaps)
		return dst, "", nil
	}
	made := s.newHeld(tx, &h)
	s.commit(tx, snaps, mode.MaxWait)
	showBuckets(dst[mark:], charges, snaps)
	s.putSlots(dst[mark:], charges, began, false)
	made.keep(tx, charges, h.Terms)
	made.snaps = slices.Clone(dst[mark:])
	s.holds.add(made)
	return dst, h.ID, nil
}

// hasMaxHolds reports whether the store or a bucket of tx has no space for another hold.
func (s *Store) hasMaxHolds(tx *transaction) bool {
	s.holds.drop(tx.now, s.hasSlot)
	full := len(s.holds.byID) >= MaxHolds
	for i := range tx.cells {
		c := &tx.cells[i]
		full = full || c.row.Holds(&c.limit, tx.now) >= bucket.MaxHolds
	}
	return full
}

// newHeld returns a new hold for the buckets of tx, which commit fills in.
func (s *Store) newHeld(tx *transaction, h *store.Hold) *held {
	made := &held{id: h.ID, refund: h.Refund, state: store.HoldOpen, expires: tx.now.Add(h.TTL), parts: make([]heldPart, len(tx.cells))}
	made.until = made.expires.Add(store.RetryHorizon)
	if h.Refund {
		made.hash = store.HashHoldID(h.ID)
	}
	history := s.holds.histories.Add(1)
	for i := range made.parts {
		made.parts[i].taken.History = history
	}
	tx.held = made
	return made
}

// keep stores the charges in a hold: those of buckets as its parts, and the keys of slots.
func (h *held) keep(tx *transaction, charges []store.Charge, terms []store.Terms) {
	for i, next := 0, 0; i < len(charges); i++ {
		key := strings.Clone(charges[i].Key)
		if isSlot(&charges[i]) {
			h.slots = append(h.slots, key)
			continue
		}
		c, p := &tx.cells[next], &h.parts[next]
		p.Charge, p.own, p.terms = charges[i], c.hash().withoutNumber(), terms[i]
		p.over = p.taken.Cost == 0 || c.spill != bucket.SpillNone
		p.Key = key
		next++
	}
}

// repeatHold repeats the answer of a hold, and takes its slots again if one has ended.
func (s *Store) repeatHold(dst []bucket.Snapshot, h *held, charges []store.Charge, now bucket.Instant) ([]bucket.Snapshot, string, error) {
	if !h.matches(charges) {
		return dst, "", holdError(store.ErrHoldKeys)
	}
	mark := len(dst)
	if dst = append(dst, h.snaps...); !s.takeSlotsAgain(dst[mark:], charges, now) {
		return dst, "", nil
	}
	return dst, h.id, nil
}

// takeSlotsAgain takes the slots of a repeated hold if one of them has ended. For a denial it fills in their snapshots.
func (s *Store) takeSlotsAgain(snaps []bucket.Snapshot, charges []store.Charge, now bucket.Instant) bool {
	if s.holdsSlots(charges, now) {
		return true
	}
	found := make([]bucket.Snapshot, len(charges))
	if s.peekSlots(found, charges, now, mete.Mode{}) {
		s.putSlots(found, charges, now, false)
		return true
	}
	for i := range charges {
		if isSlot(&charges[i]) {
			snaps[i] = found[i]
		}
	}
	return false
}

func holdError(err error) error {
	return &mete.StoreError{Op: "hold", Store: "memstore", Spent: mete.NotSpent, Err: err}
}

// remember returns the state after an admitted take becomes part i of tx's hold, or awaits its settlement. A cost of 0 needs
// no history, and neither does a bucket without space, which gets no refunds.
func (s *Store) remember(tx *transaction, i int, state bucket.State, taken bucket.Taken) bucket.State {
	c := &tx.cells[i]
	if tx.held == nil && c.await <= 0 {
		return state
	}
	none := taken.Cost == 0 || c.spill != bucket.SpillNone
	if tx.held == nil {
		if none {
			return state
		}
		taken.History = s.holds.histories.Add(1)
		c.limit.AwaitOn(&state, tx.now, taken, c.await)
		return state
	}
	p := &tx.held.parts[i]
	taken.History, p.taken = p.taken.History, taken
	if !none {
		p.taken = c.limit.HoldOn(&state, tx.now, taken, tx.held.expires, tx.held.refund)
	}
	return state
}

// matches reports whether the charges have the keys of the hold.
func (h *held) matches(charges []store.Charge) bool {
	parts, slots := h.parts, h.slots
	for i := range charges {
		switch c := &charges[i]; {
		case isSlot(c) && len(slots) > 0 && slots[0] == c.Key:
			slots = slots[1:]
		case !isSlot(c) && len(parts) > 0 && parts[0].Key == c.Key:
			parts = parts[1:]
		default:
			return false
		}
	}
	return len(parts) == 0 && len(slots) == 0
}

// find returns the hold with this ID, or nil. The caller holds the mutex.
func (h *holds) find(id string, now bucket.Instant) *held {
	found := h.byID[id]
	if found == nil || now >= found.until {
		return nil
	}
	return found
}

func (h *holds) add(made *held) {
	if h.byID == nil {
		h.byID, h.due = map[string]*held{}, map[hash]*endings{}
	}
	h.byID[made.id] = made
	made.end = ending{made.until, made, nil}
	heap.Push(&h.ends, &made.end)
	if made.refund {
		h.addDue(made)
	}
}

func (h *holds) addDue(made *held) {
	for i := range made.parts {
		p := &made.parts[i]
		if p.over {
			continue
		}
		if h.due[p.own] == nil {
			h.due[p.own] = new(endings)
		}
		list := h.due[p.own]
		if at := list.find(p); at >= 0 { // a renewal
			p.due.at = made.expires
			heap.Fix(list, at)
		} else {
			p.due = ending{made.expires, made, p}
			heap.Push(list, &p.due)
		}
	}
}

// dropRefunds drops the refunds of a bucket that is reset: the reset has returned their tokens.
func (h *holds) dropRefunds(own hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.due, own.withoutNumber())
}

// drop removes the holds that have ended longer than RetryHorizon ago. The refund of an expired hold waits for the next
// use of its bucket, and is dropped with the bucket.
func (h *holds) drop(now bucket.Instant, exists func(hash) bool) {
	for len(h.ends) > 0 && h.ends[0].at <= now {
		old := heap.Pop(&h.ends).(*ending).hold
		if old.until > now {
			old.end.at = old.until
			heap.Push(&h.ends, &old.end)
			continue
		}
		if h.byID[old.id] == old {
			delete(h.byID, old.id)
		}
		if h.dropDue(old, exists) {
			old.end.at = now.Add(store.RetryHorizon)
			heap.Push(&h.ends, &old.end)
		}
	}
}

// dropDue removes the refunds of a hold that nothing waits for. It reports whether others remain.
func (h *holds) dropDue(old *held, exists func(hash) bool) (remain bool) {
	for i := range old.parts {
		p := &old.parts[i]
		list := h.due[p.own]
		if list == nil {
			continue
		}
		if old.state != store.HoldSettled && !p.over && exists(p.own) {
			remain = true
			continue
		}
		if at := list.find(p); at >= 0 {
			heap.Remove(list, at)
		}
		if len(*list) == 0 {
			delete(h.due, p.own)
		}
	}
	return remain
}

// refundExpired returns the row of a bucket after the refunds of its holds that expire until now.
func (h *holds) refundExpired(own hash, row bucket.Row, now bucket.Instant) bucket.Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	own = own.withoutNumber()
	next := bucket.Instant(0)
	for list := h.due[own]; list != nil; {
		if len(*list) == 0 {
			delete(h.due, own)
			break
		}
		first := (*list)[0]
		p, active := first.part, first.hold.state != store.HoldSettled && first.hold.expires == first.at && !first.part.over
		if active && first.at > now {
			next = first.at
			break
		}
		if heap.Pop(list); active {
			p.over = true
			row = row.WithSettlement(&p.Limit, first.at, p.Cost-p.terms.Target(p.Cost, 0), p.taken)
		}
	}
	for i := range row {
		row = row.WithDue(&row[i].Limit, next)
	}
	return row
}

// Settle implements [store.Holder].
func (s *Store) Settle(_ context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	if err := store.CheckSettlement(actual...); err != nil {
		return store.HoldStatus{}, &mete.StoreError{Op: "settle", Store: "memstore", Spent: mete.NotSpent, Err: err}
	}
	return s.withHold(id, func(h *held, tx *transaction) (store.HoldStatus, bool) {
		for i := range tx.cells {
			c, p := &tx.cells[i], &h.parts[i]
			if c.cost = max(p.terms.Target(p.Cost, actual...)-p.Cost, 0); c.cost > 0 {
				if snap := c.limit.Peek(c.before, tx.now, c.cost, bucket.Forced); !snap.Allowed {
					return h.status(tx.now), false
				}
			}
		}
		for i := range tx.cells {
			c, p := &tx.cells[i], &h.parts[i]
			if c.cost > 0 {
				c.limit.SpendOn(&c.after, tx.now, c.cost, bucket.Forced)
				c.row = c.row.WithState(&c.limit, c.after, tx.now, c.cost)
			}
			if !p.over {
				c.row = c.row.WithSettlement(&c.limit, tx.now, p.Cost-p.terms.Target(p.Cost, actual...), p.taken)
			}
		}
		h.state, h.actual, h.until = store.HoldSettled, actual[0], max(h.expires, tx.now).Add(store.RetryHorizon)
		status := h.status(tx.now)
		status.Settled = true
		return status, true
	})
}

// Renew implements [store.Holder].
func (s *Store) Renew(_ context.Context, id string, ttl time.Duration) (store.HoldStatus, error) {
	if err := store.CheckHoldTTL(ttl); err != nil {
		return store.HoldStatus{}, &mete.StoreError{Op: "renew", Store: "memstore", Spent: mete.NotSpent, Err: err}
	}
	return s.withHold(id, func(h *held, tx *transaction) (store.HoldStatus, bool) {
		h.expires = tx.now.Add(ttl)
		h.until = h.expires.Add(store.RetryHorizon)
		if h.refund {
			s.holds.addDue(h)
		}
		for i := range tx.cells {
			c, p := &tx.cells[i], &h.parts[i]
			if !p.over {
				c.row = c.row.WithRenewal(&c.limit, tx.now, p.taken, h.expires, h.refund)
			}
		}
		return h.status(tx.now), true
	})
}

// withHold calls change for an open hold with the rows of its buckets, and writes them if change returns true.
func (s *Store) withHold(id string, change func(*held, *transaction) (store.HoldStatus, bool)) (store.HoldStatus, error) {
	s.holds.mu.Lock()
	h := s.holds.byID[id]
	s.holds.mu.Unlock()
	if h == nil {
		return store.HoldStatus{}, nil
	}
	tx := s.newTransaction(len(h.parts))
	for i := range h.parts {
		p := &h.parts[i]
		tx.cells[i] = cell{key: p.Key, own: p.own, family: store.Family(p.Key), limit: p.Limit}
		if p.OnFull != store.OnFullShare {
			tx.cells[i].onFull = store.OnFullOpen // the work is done
		}
	}
	if !s.open(tx, mete.Mode{}, false) {
		s.open(tx, mete.Mode{}, true)
	}
	defer s.finish(tx)
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	if h = s.holds.find(id, tx.now); h == nil {
		s.rollBack(tx, true)
		return store.HoldStatus{}, nil
	}
	if status := h.status(tx.now); status.State != store.HoldOpen {
		s.rollBack(tx, true)
		return status, nil
	}
	for i := range h.parts {
		p := &h.parts[i]
		p.over = p.over || !tx.cells[i].row.HasHistory(&p.Limit, p.taken)
	}
	status, changed := change(h, tx)
	if !changed {
		s.rollBack(tx, true)
		return status, nil
	}
	for i := range tx.cells {
		if c := &tx.cells[i]; c.slot != nil && c.first == i && len(c.row) > 0 {
			s.writeRow(c, c.row)
			c.slot = nil
		}
	}
	s.rollBack(tx, true) // the cells without a row
	return status, nil
}

func (h *held) status(now bucket.Instant) store.HoldStatus {
	status := store.HoldStatus{State: h.state, Expires: h.expires, Actual: h.actual}
	if h.state == store.HoldOpen && now >= h.expires {
		status.State = store.HoldExpired
	}
	return status
}

func (s *Store) hasSlot(own hash) bool {
	sl, _ := s.find(own)
	return sl != nil
}
