// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/store"
)

// MaxHolds bounds the open holds of a store, and in a cluster of each slot. At the bound, [Store.Hold] returns
// [store.ErrTooManyHolds].
const MaxHolds = 1 << 18

var _ store.Holder = (*Store)(nil)

// A holdAsk is the part of an ask about a hold.
type holdAsk struct {
	record string // key of the hold
	index  string // key of all open holds

	position int    // of the record among those of its kind: see program
	hash     string // orders refunds at one instant
	ttl      time.Duration
	refund   bool
	terms    []store.Terms
	due      []string // keys of the buckets' refunds
	actual   []bucket.Tokens

	history string // ID for a new history of a bucket

	refusal   string // of a hold
	repeated  bool   // the hold was there
	slotEnded bool   // a slot of a repeated hold has ended
	answer    string // to a settlement or a renewal

	settled []bucket.Tokens // the amounts of the first settlement
}

// Settlements that undo a hold: see take_hold.lua.
const (
	undoHold bucket.Tokens = -2 // the hold was made
	dropHold bucket.Tokens = -3 // the hold may still be made
)

// Hold implements [store.Holder]. In a cluster, it makes a part of the hold in each slot, one after another. If a slot
// denies or fails, the earlier parts are undone. A part in a slot that is unreachable then stays charged. After an error
// that may have made a part, the same ID may return [store.ErrHoldEnded]. A repeated hold takes ended slots of a
// concurrency limit again in a second call.
//
// A hold with [store.Hold.Refund] cannot include leased charges.
func (s *Store) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	err := h.Check(charges)
	for i := range charges {
		if c := &charges[i]; err == nil && h.Refund && c.Leased && lease.Leasable(&c.Limit) {
			err = fmt.Errorf("%w: a leased limit cannot refund an expired hold", store.ErrHold)
		}
	}
	if err != nil {
		return dst, "", withOp(&mete.StoreError{Spent: mete.NotSpent, Err: err}, "hold")
	}
	t := partsTake{store: s, charges: charges, mode: mode, parts: s.splitCharges(charges, bySlot), attempt: rand.Text()}
	if mode.Within > 0 {
		t.until = time.Now().Add(mode.Within)
	}
	t.snaps, t.denied = make([]bucket.Snapshot, len(charges)), len(t.parts)
	made, ended := false, []store.Charge(nil) // a new part; charges of repeated parts with an ended slot
	for i := range t.parts {
		said, allowed, err := t.hold(ctx, i, &h)
		if err != nil {
			if mete.Spent(err) == mete.MaybeSpent && len(t.parts) > 1 {
				s.undoHolds(t.parts[i:i+1], h.ID, dropHold)
			}
			s.undoHolds(t.parts[:i], h.ID, undoHold)
			return dst, "", withOp(err, "hold")
		}
		if !allowed {
			s.undoHolds(t.parts[:i], h.ID, undoHold)
			if len(t.parts) > 1 {
				if mode.MaxWait == 0 {
					t.denied = i // the later parts start penalties, as in one step
				}
				_, err = t.peek(ctx, i)
			}
			return append(dst, t.snaps...), "", err
		}
		if made = made || !said.repeated; said.slotEnded {
			ended = append(ended, t.parts[i].charges...)
		}
	}
	if len(ended) > 0 {
		if allowed, err := t.takeSlotsAgain(ctx, ended); !allowed || err != nil {
			if made {
				s.undoHolds(t.parts, h.ID, undoHold)
			}
			if err != nil {
				return dst, "", withOp(err, "hold")
			}
			return append(dst, t.snaps...), "", nil
		}
	}
	return append(dst, t.snaps...), s.encodeHoldID(h.ID, t.parts), nil
}

// takeSlotsAgain takes the slots among the charges again. For a denial it fills in their snapshots.
func (t *partsTake) takeSlotsAgain(ctx context.Context, charges []store.Charge) (bool, error) {
	charges = slices.DeleteFunc(charges, func(c store.Charge) bool { return kindOf(&c.Limit) != held })
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	mode := mete.Mode{}
	if !t.until.IsZero() {
		mode.Within = max(time.Until(t.until), time.Nanosecond)
	}
	snaps, allowed, err := t.store.take(ctx, nil, charges, mode)
	if allowed || err != nil {
		return allowed, err
	}
	for i := range t.charges {
		if at, found := slices.BinarySearchFunc(charges, t.charges[i].Key, func(c store.Charge, key string) int { return strings.Compare(c.Key, key) }); found {
			t.snaps[i] = snaps[at]
		}
	}
	return false, nil
}

// hold makes part i of a hold. It returns the answered ask.
func (t *partsTake) hold(ctx context.Context, i int, h *store.Hold) (*holdAsk, bool, error) {
	p, s := &t.parts[i], t.store
	a := newAsk(opTake, p.charges, t.mode)
	s.addLeases(a)
	s.addPenalties(a)
	a.hold = &holdAsk{hash: store.HashHoldID(h.ID), ttl: h.TTL, refund: h.Refund, history: t.attempt}
	a.hold.record, a.hold.index = s.holdKeys(p.slot, h.ID)
	for j, at := range p.order {
		a.hold.terms = append(a.hold.terms, h.Terms[at])
		if h.Refund {
			a.hold.due = append(a.hold.due, s.dueKey(p.charges[j].Key)) // a slot's is not used
		}
	}
	said := a.hold
	within := time.Duration(0)
	if !t.until.IsZero() {
		within = max(time.Until(t.until), time.Nanosecond)
	}
	if err := a.submit(ctx, s.laneFor(p.charges), within); err != nil {
		return said, false, err
	}
	defer a.release()
	refusals := map[string]error{"ended": store.ErrHoldEnded, "keys": store.ErrHoldKeys, "full": store.ErrTooManyHolds}
	if said.refusal != "" {
		err := refusals[said.refusal]
		if err == nil {
			err = newAnswerError("invalid refusal", said.refusal)
		}
		return said, false, &mete.StoreError{Spent: mete.NotSpent, Err: err}
	}
	for j, at := range p.order {
		t.snaps[at] = a.snaps[j]
	}
	return said, a.allowed, nil
}

// undoHolds undoes parts of a hold, concurrently. It tries once: a part that is unreachable stays charged.
func (s *Store) undoHolds(parts []part, id string, way bucket.Tokens) {
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			_, _ = s.endHold(context.Background(), opSettle, parts[i].slot, id, &holdAsk{actual: []bucket.Tokens{way}})
		})
	}
	all.Wait()
}

// holdKeys returns the keys of a hold and of all open holds in a slot. A reader of Redis cannot settle the hold,
// because the key is a hash of the ID.
func (s *Store) holdKeys(slot int, id string) (record, index string) {
	sum := sha256.Sum256([]byte(id))
	name := base64.RawURLEncoding.EncodeToString(sum[:18])
	if _, tagged := hashTag(s.config.Prefix); tagged || !s.cluster {
		return s.config.Prefix + "hold:" + name, s.config.Prefix + "holds"
	}
	tag := "{" + tags()[slot] + "}"
	return s.config.Prefix + "hold:" + tag + name, s.config.Prefix + "holds:" + tag
}

const slotChars = 3

// encodeHoldID returns the ID of a hold: in a cluster, with the slots of its parts. Parts without buckets follow the others,
// because the first part decides a settlement.
func (s *Store) encodeHoldID(id string, parts []part) string {
	if !s.cluster {
		return id
	}
	buckets, others := "", ""
	for i := range parts {
		if p := &parts[i]; slices.ContainsFunc(p.charges, func(c store.Charge) bool { return kindOf(&c.Limit) != held }) {
			buckets += encodeSlot(p.slot)
		} else {
			others += encodeSlot(p.slot)
		}
	}
	return id + "." + buckets + others
}

func encodeSlot(slot int) string {
	text := strconv.FormatInt(int64(slot), 36)
	return strings.Repeat("0", slotChars-len(text)) + text
}

// splitHoldID returns the ID without its slots, and the slots.
func (s *Store) splitHoldID(id string) (base string, in []int, ok bool) {
	base, text, found := strings.Cut(id, ".")
	if found != s.cluster || len(text)%slotChars != 0 || found && text == "" || len(text) > slotChars*store.MaxCharges {
		return "", nil, false
	}
	if !found {
		return base, []int{0}, true
	}
	for ; text != ""; text = text[slotChars:] {
		slot, err := strconv.ParseUint(text[:slotChars], 36, 32)
		if err != nil || slot >= slots {
			return "", nil, false
		}
		in = append(in, int(slot))
	}
	return base, in, true
}

// Settle implements [store.Holder]. In a cluster, each slot settles its part. The first slot decides: the others settle
// with its amounts. If a limit of another slot cannot owe the excess, its part stays open, and a repeated call settles it.
func (s *Store) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (store.HoldStatus, error) {
	if err := store.CheckSettlement(actual...); err != nil {
		return store.HoldStatus{}, withOp(&mete.StoreError{Spent: mete.NotSpent, Err: err}, "settle")
	}
	base, in, ok := s.splitHoldID(id)
	if !ok {
		return store.HoldStatus{}, nil
	}
	first := &holdAsk{actual: actual}
	status, err := s.endHold(ctx, opSettle, in[0], base, first)
	if err == nil && status.State == store.HoldSettled && len(in) > 1 {
		var rest store.HoldStatus
		if rest, err = s.endParts(ctx, opSettle, in[1:], base, holdAsk{actual: first.settled}); rest.State == store.HoldOpen {
			status.State, status.Settled = rest.State, false
		}
	}
	if err != nil {
		return store.HoldStatus{}, withOp(err, "settle")
	}
	return status, nil
}

// Renew implements [store.Holder].
func (s *Store) Renew(ctx context.Context, id string, ttl time.Duration) (store.HoldStatus, error) {
	if err := store.CheckHoldTTL(ttl); err != nil {
		return store.HoldStatus{}, withOp(&mete.StoreError{Spent: mete.NotSpent, Err: err}, "renew")
	}
	base, in, ok := s.splitHoldID(id)
	if !ok {
		return store.HoldStatus{}, nil
	}
	status, err := s.endParts(ctx, opRenew, in, base, holdAsk{ttl: ttl})
	if err != nil {
		return store.HoldStatus{}, withOp(err, "renew")
	}
	return status, nil
}

// endParts settles or renews several parts concurrently. It returns the status of an open part, if there is one.
func (s *Store) endParts(ctx context.Context, op int, in []int, id string, h holdAsk) (store.HoldStatus, error) {
	statuses, errs := make([]store.HoldStatus, len(in)), make([]error, len(in))
	var all sync.WaitGroup
	for i, slot := range in {
		all.Go(func() {
			one := h
			statuses[i], errs[i] = s.endHold(ctx, op, slot, id, &one)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return store.HoldStatus{}, err
		}
	}
	for _, status := range statuses {
		if status.State == store.HoldOpen {
			return status, nil
		}
	}
	return statuses[0], nil
}

// endHold settles or renews the part of a hold in one slot.
func (s *Store) endHold(ctx context.Context, op, slot int, id string, h *holdAsk) (status store.HoldStatus, err error) {
	h.record, h.index = s.holdKeys(slot, id)
	a := newAsk(op, nil, mete.Mode{})
	a.hold = h
	var l *lane.Lane[*ask]
	if l = s.lanes.At(0); s.cluster {
		l = s.lanes.At(slot)
	}
	if err := a.submit(ctx, l, 0); err != nil {
		return status, err
	}
	a.release()
	if h.answer == "broken" {
		return status, &mete.StoreError{Spent: mete.NotSpent, Err: errCorruptRow}
	}
	fields := strings.Split(h.answer, ",")
	n := make([]int64, len(fields))
	for i := range n {
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil || len(n) < 4 {
			return status, newAnswerError("invalid hold", h.answer)
		}
	}
	for _, amount := range n[3:] {
		h.settled = append(h.settled, bucket.Tokens(amount))
	}
	return store.HoldStatus{State: store.HoldState(n[0]), Expires: bucket.Instant(n[1]), Actual: h.settled[0], Settled: n[2] == 1}, nil
}

// encodeHold encodes the hold of a take.
func (p *program) encodeHold(h *holdAsk) {
	p.numbers.add(p.addOther(h.record))
	p.numbers.add(p.addName(h.index))
	p.numbers.add(p.addName(h.hash))
	p.numbers.add(h.ttl.Microseconds())
	p.numbers.addBool(h.refund)
	p.numbers.add(store.RetryHorizon.Microseconds())
	p.numbers.add(p.addName(h.history))
	for i := range h.terms {
		t := &h.terms[i]
		p.numbers.addBool(t.Kept)
		p.numbers.add(int64(t.Fixed))
		p.numbers.add(int64(t.Asked))
		p.numbers.add(int64(t.Unit))
		due := ""
		if h.refund {
			due = h.due[i]
		}
		p.numbers.add(p.addName(due))
	}
}

// encodeEnd encodes a settlement or a renewal.
func (p *program) encodeEnd(a *ask) {
	p.numbers.add(int64(a.op))
	p.numbers.add(p.numberOf(place{ended, a.hold.position}))
	p.numbers.add(p.addName(a.hold.index))
	p.numbers.add(store.RetryHorizon.Microseconds())
	if a.op == opRenew {
		p.numbers.add(a.hold.ttl.Microseconds())
		return
	}
	p.numbers.add(int64(len(a.hold.actual)))
	for _, amount := range a.hold.actual {
		p.numbers.add(int64(amount))
	}
}
