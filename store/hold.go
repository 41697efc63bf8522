// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Holder is a [Store] with holds: takes that survive their process, until any process settles them. It is safe for
// concurrent use.
type Holder interface {
	// Hold is Take, and stores an admitted take as an open hold in the same step. It appends the snapshots to dst, and
	// returns the ID of the hold, or an empty ID for a denial. The ID begins with h.ID. The mode may have a MaxWait
	// and Within, and nothing else.
	//
	// If h.ID already has a hold, Hold charges nothing and repeats the answer. A caller can therefore repeat the call
	// after a lost answer. The error is [ErrHoldKeys] if that hold has other keys, and [ErrHoldEnded] if it has ended
	// without an answer to repeat. It is [ErrTooManyHolds] if a bucket or the store has too many holds.
	//
	// Hold takes the slots of concurrency limits in the same step. They are no part of the hold: its settlement, renewal
	// and expiry leave them. The caller renews and releases them as after a Take. If a slot has ended before a
	// repeated call, Hold takes the slots again. If none is free, it returns a denial, and the hold stays.
	Hold(ctx context.Context, dst []bucket.Snapshot, charges []Charge, mode Mode, h Hold) (snaps []bucket.Snapshot, id string, err error)

	// Settle ends a hold in one atomic step. It refunds the part of each cost above [Terms.Target] without breaking the
	// limit's bound: see [bucket.Limit.Cancel]. It refunds nothing to a bucket that was reset since the hold. It charges a
	// missing part as a debt. If a limit cannot owe the debt, nothing changes, and the hold stays open. Later calls change
	// nothing, and return the first settlement.
	//
	// A single amount settles all units of the hold. Otherwise each unit has its own: see [Terms.Unit].
	Settle(ctx context.Context, id string, actual ...bucket.Tokens) (HoldStatus, error)

	// Renew makes an open hold expire after ttl from now.
	Renew(ctx context.Context, id string, ttl time.Duration) (HoldStatus, error)
}

// A Hold describes a new hold.
type Hold struct {
	ID     string        // cannot be guessed; between MinHoldIDBytes and MaxIDBytes letters and digits
	TTL    time.Duration // until the hold expires, at most MaxHoldTTL
	Refund bool          // an expired hold is settled with 0 at its expiry. Otherwise it keeps its charge
	Terms  []Terms       // of each charge
}

const (
	// MinHoldIDBytes is the least length of [Hold.ID].
	MinHoldIDBytes = 16

	// MaxHoldTTL bounds the time until a hold expires.
	MaxHoldTTL = 7 * 24 * time.Hour
)

// Terms define the settlement of one charge. The zero Terms settle the whole cost. Stores ignore the terms of a slot.
type Terms struct {
	Kept  bool          // the settlement does not change the cost
	Fixed bucket.Tokens // part of the cost that stays, before scaling
	Asked bucket.Tokens // the cost before scaling; 0 if it was not scaled
	Unit  uint8         // of the cost: the position of its amount in a settlement, below MaxCharges
}

// Keep, as an amount of a settlement, leaves the costs of its unit as they were taken.
const Keep bucket.Tokens = -1

// Target returns the cost after a settlement with actual of a hold that was charged cost. The last amount also settles
// higher units.
func (t *Terms) Target(cost bucket.Tokens, actual ...bucket.Tokens) bucket.Tokens {
	amount := actual[min(int(t.Unit), len(actual)-1)]
	if t.Kept || amount == Keep {
		return cost
	}
	total := min(t.Fixed+amount, bucket.MaxTokens)
	if t.Asked == 0 || t.Asked == cost {
		return total
	}
	hi, lo := bits.Mul64(uint64(total), uint64(cost))
	if hi >= uint64(t.Asked) {
		return bucket.MaxTokens
	}
	q, r := bits.Div64(hi, lo, uint64(t.Asked))
	return bucket.Tokens(min(q+min(r, 1), uint64(bucket.MaxTokens)))
}

// A HoldState is the state of a hold after a call.
type HoldState uint8

const (
	HoldUnknown HoldState = iota // there is no such hold, or it ended longer than RetryHorizon ago
	HoldOpen
	HoldSettled
	HoldExpired
)

func (s HoldState) String() string {
	if names := [...]string{"unknown", "open", "settled", "expired"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("hold state %d", uint8(s))
}

// A HoldStatus is the answer about a hold.
type HoldStatus struct {
	State   HoldState
	Expires bucket.Instant // by the store's clock; 0 for an unknown hold
	Actual  bucket.Tokens  // the first amount of the settlement
	Settled bool           // this call has settled the hold
}

var (
	// ErrTooManyHolds: the hold would exceed [bucket.MaxHolds] or the bound of the store. Nothing was charged.
	ErrTooManyHolds = errors.New("too many open holds: settle or release some, or use a shorter ttl")

	// ErrHoldUnknown: the store has no hold with this ID, or the hold ended longer than [RetryHorizon] ago. Stores return
	// [HoldUnknown] instead.
	ErrHoldUnknown = errors.New("unknown hold: check its id, and settle a hold before it expires")

	// ErrHoldEnded: a repeated hold has already ended.
	ErrHoldEnded = errors.New("the hold has already ended: hold again with a new id")

	// ErrHoldKeys: the ID belongs to a hold of other buckets.
	ErrHoldKeys = errors.New("the id belongs to a hold of other buckets: use a new id")

	// ErrHold: the hold is invalid.
	ErrHold = errors.New("mete: invalid hold")
)

// HashHoldID returns a hash of the ID of a hold. Stores write the hash instead of the ID, because a reader of their data
// must not be able to settle the hold. Stores refund holds that expire at one instant in the order of their hashes.
func HashHoldID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// Check returns an error that wraps [ErrHold] unless h is valid for charges.
func (h *Hold) Check(charges []Charge) error {
	if err := CheckHoldTTL(h.TTL); err != nil {
		return err
	}
	if len(h.Terms) != len(charges) {
		return fmt.Errorf("%w: %d terms for %d charges", ErrHold, len(h.Terms), len(charges))
	}
	if len(h.ID) < MinHoldIDBytes || len(h.ID) > MaxIDBytes {
		return fmt.Errorf("%w: id of %d bytes: must have between %d and %d", ErrHold, len(h.ID), MinHoldIDBytes, MaxIDBytes)
	}
	for i := range h.Terms {
		if unit := h.Terms[i].Unit; unit >= MaxCharges {
			return fmt.Errorf("%w: unit %d of charge %d: must be below %d", ErrHold, unit, i, MaxCharges)
		}
	}
	for _, c := range []byte(h.ID) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("%w: id %q: must consist of letters and digits", ErrHold, h.ID)
		}
	}
	return nil
}

// CheckHoldTTL returns an error that wraps [ErrHold] unless ttl is valid.
func CheckHoldTTL(ttl time.Duration) error {
	if ttl < time.Millisecond || ttl > MaxHoldTTL {
		return fmt.Errorf("%w: ttl %v: must be between 1ms and %v", ErrHold, ttl, MaxHoldTTL)
	}
	return nil
}

// CheckSettlement returns an error that wraps [ErrHold] unless a hold can be settled with actual.
func CheckSettlement(actual ...bucket.Tokens) error {
	if len(actual) == 0 || len(actual) > MaxCharges {
		return fmt.Errorf("%w: settle %d amounts: send between 1 and %d", ErrHold, len(actual), MaxCharges)
	}
	for _, amount := range actual {
		if amount < Keep || amount > bucket.MaxTokens {
			return fmt.Errorf("%w: settle %v tokens: must be between 0 and %v", ErrHold, amount, bucket.MaxTokens)
		}
	}
	return nil
}
