// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A modelHold is a hold of a [Model].
type modelHold struct {
	id      string
	state   store.HoldState
	expires bucket.Instant
	until   bucket.Instant // the end of the record
	refund  bool
	actual  bucket.Tokens
	keys    []string // of all charges
	parts   []modelPart
	snaps   []bucket.Snapshot
}

// A modelPart is the charge of one bucket. over is true without a cost, and once an expired hold was refunded or the bucket
// was reset.
type modelPart struct {
	store.Charge
	terms store.Terms
	taken bucket.Taken
	over  bool
}

// Hold implements [store.Holder].
func (s *Model) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	if err := h.Check(charges); err != nil {
		return dst, "", &mete.StoreError{Op: "hold", Store: "model", Spent: mete.NotSpent, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for i := range charges {
		s.row(charges[i].Key, now)
	}
	if old := s.recallHold(h.ID, now); old != nil {
		if !old.matches(charges) {
			return dst, "", &mete.StoreError{Op: "hold", Store: "model", Spent: mete.NotSpent, Err: store.ErrHoldKeys}
		}
		if snaps, allowed := s.takeSlotsAgain(old, charges, now); !allowed {
			return append(dst, snaps...), "", nil
		}
		return append(dst, old.snaps...), h.ID, nil
	}
	for i := range charges {
		if s.row(charges[i].Key, now).Holds(&charges[i].Limit, now) >= bucket.MaxHolds {
			return dst, "", &mete.StoreError{Op: "hold", Store: "model", Spent: mete.NotSpent, Err: store.ErrTooManyHolds}
		}
	}
	mark := len(dst)
	charges = slices.Clone(charges)
	for i := range charges {
		charges[i].Await = 0
	}
	dst, allowed, _ := s.takeSlots(dst, charges, mete.Mode{MaxWait: mode.MaxWait})
	if !allowed {
		return dst, "", nil
	}
	made := &modelHold{id: h.ID, state: store.HoldOpen, expires: now.Add(h.TTL), refund: h.Refund, snaps: slices.Clone(dst[mark:])}
	made.until = made.expires.Add(store.RetryHorizon)
	s.histories++
	for i := range charges {
		c, taken := charges[i], dst[mark+i].Taken()
		if made.keys = append(made.keys, c.Key); isSlot(&c) {
			continue
		}
		taken.History = s.histories
		if taken.Cost > 0 {
			s.rows[c.Key], taken = s.rows[c.Key].WithHold(&c.Limit, now, taken, made.expires, h.Refund)
		}
		made.parts = append(made.parts, modelPart{Charge: c, terms: h.Terms[i], taken: taken, over: taken.Cost == 0})
	}
	s.holds[h.ID] = made
	return dst, h.ID, nil
}

func (h *modelHold) matches(charges []store.Charge) bool {
	return slices.EqualFunc(h.keys, charges, func(key string, c store.Charge) bool { return key == c.Key })
}

// takeSlotsAgain takes the slots of a repeated hold if one has ended. It returns the answer of the hold, with new snapshots of
// the slots for a denial.
func (s *Model) takeSlotsAgain(h *modelHold, charges []store.Charge, now bucket.Instant) (snaps []bucket.Snapshot, allowed bool) {
	slots := slices.DeleteFunc(slices.Clone(charges), func(c store.Charge) bool { return !isSlot(&c) })
	if !slices.ContainsFunc(slots, func(c store.Charge) bool { return c.Cost > 0 && !s.holdsSlot(&c, now) }) {
		return h.snaps, true
	}
	again, allowed, _ := s.takeSlots(nil, slots, mete.Mode{})
	snaps = slices.Clone(h.snaps)
	for i := range charges {
		if isSlot(&charges[i]) {
			snaps[i], again = again[0], again[1:]
		}
	}
	return snaps, allowed
}

// dropHolds ends the parts of a bucket that is reset, in all holds: the reset has returned their tokens.
func (s *Model) dropHolds(key string) {
	for _, h := range s.holds {
		for i := range h.parts {
			p := &h.parts[i]
			p.over = p.over || p.Key == key
		}
	}
}

// recallHold returns a hold that the model remembers, or nil. It refunds the expired holds of its buckets.
func (s *Model) recallHold(id string, now bucket.Instant) *modelHold {
	h := s.holds[id]
	if h == nil || now >= h.until {
		return nil
	}
	for i := range h.parts {
		s.row(h.parts[i].Key, now)
	}
	return h
}

// Settle implements [store.Holder].
func (s *Model) Settle(_ context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	if err := store.CheckSettlement(actual...); err != nil {
		return store.HoldStatus{}, &mete.StoreError{Op: "settle", Store: "model", Spent: mete.NotSpent, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	h := s.recallHold(id, now)
	if h == nil {
		return store.HoldStatus{}, nil
	}
	if status := h.status(now); status.State != store.HoldOpen {
		return status, nil
	}
	rows := make([]bucket.Row, len(h.parts))
	for i := range h.parts {
		p := &h.parts[i]
		row, target := s.row(p.Key, now), p.terms.Target(p.Cost, actual...)
		switch {
		case target < p.Cost && p.over:
		case target < p.Cost:
			row = row.Cancel(&p.Limit, now, p.Cost-target, p.taken)
		case target > p.Cost:
			state, _ := row.StateFor(&p.Limit, now)
			after, snap := p.Limit.Reserve(state, now, target-p.Cost, bucket.Forced)
			if !snap.Allowed {
				return h.status(now), nil
			}
			row = row.WithState(&p.Limit, after, now, target-p.Cost)
		}
		if rows[i] = row; !p.over {
			rows[i] = row.WithoutHold(&p.Limit, now, p.taken)
		}
	}
	for i := range h.parts {
		s.rows[h.parts[i].Key] = rows[i]
	}
	h.state, h.actual, h.until = store.HoldSettled, actual[0], max(h.expires, now).Add(store.RetryHorizon)
	status := h.status(now)
	status.Settled = true
	return status, nil
}

func (h *modelHold) status(now bucket.Instant) store.HoldStatus {
	status := store.HoldStatus{State: h.state, Expires: h.expires, Actual: h.actual}
	if h.state == store.HoldOpen && now >= h.expires {
		status.State = store.HoldExpired
	}
	return status
}

// Renew implements [store.Holder].
func (s *Model) Renew(_ context.Context, id string, ttl time.Duration) (store.HoldStatus, error) {
	if err := store.CheckHoldTTL(ttl); err != nil {
		return store.HoldStatus{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	h := s.recallHold(id, now)
	if h == nil {
		return store.HoldStatus{}, nil
	}
	if h.status(now).State == store.HoldOpen {
		h.expires = now.Add(ttl)
		h.until = h.expires.Add(store.RetryHorizon)
		for i := range h.parts {
			p := &h.parts[i]
			row := s.row(p.Key, now)
			if !p.over {
				row = row.WithRenewal(&p.Limit, now, p.taken, h.expires, h.refund)
			}
			s.rows[p.Key] = row
		}
	}
	return h.status(now), nil
}

// row returns the row of a key at now. It first refunds the holds that have expired since.
func (s *Model) row(key string, now bucket.Instant) bucket.Row {
	due := s.rows[key].Due()
	if due == 0 || now < due {
		return s.rows[key]
	}
	type end struct {
		hold *modelHold
		part *modelPart
	}
	var ends []end
	next := bucket.Instant(0)
	for _, h := range s.holds {
		for i := range h.parts {
			p := &h.parts[i]
			switch {
			case p.Key != key || !h.refund || h.state == store.HoldSettled || p.over:
			case now >= h.expires:
				ends = append(ends, end{h, p})
			case next == 0 || h.expires < next:
				next = h.expires
			}
		}
	}
	slices.SortFunc(ends, func(a, b end) int {
		if a.hold.expires != b.hold.expires {
			return int(a.hold.expires - b.hold.expires)
		}
		return strings.Compare(store.HashHoldID(a.hold.id), store.HashHoldID(b.hold.id))
	})
	row := s.rows[key]
	for _, e := range ends {
		p := e.part
		if target := p.terms.Target(p.Cost, 0); target < p.Cost {
			row = row.Cancel(&p.Limit, e.hold.expires, p.Cost-target, p.taken)
		}
		row, p.over = row.WithoutHold(&p.Limit, e.hold.expires, p.taken), true
	}
	for i := range row {
		row = row.WithDue(&row[i].Limit, next)
	}
	s.rows[key] = row
	return row
}
