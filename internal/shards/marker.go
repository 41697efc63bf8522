// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A marker makes a take with an ID recognizable to all processes that share the store. The parts of a cost
// depend on the contents of the shards, so a store cannot recognize a retry by its keys. The marker is a separate
// bucket, taken in the same step, with a cost that fits only once. It refills completely after
// [store.RetryHorizon]; an earlier retry finds the admitted amount in it.
type marker struct {
	on    bool
	key   string
	print int64 // hash of the ID and the keys
	there bucket.Tokens
}

// A marker's cost is more than half of its capacity. The upper part is a hash, which distinguishes it from another
// take's marker in a full store with shared buckets. The lower part is the amount that a take with UpTo found.
const (
	thereBits = 35
	printBits = 16
	halfBits  = thereBits + printBits

	// maxRemembered bounds the amount of a take with both UpTo and an ID from a sharded limit: 34 million tokens.
	maxRemembered bucket.Tokens = 1<<thereBits - 1
)

var markerLimit = func() bucket.Limit {
	l, _, _ := bucket.Spec{ // constants: no error
		Algorithm:   bucket.AlgorithmStepped,
		Capacity:    1 << (halfBits + 1),
		Rate:        bucket.Rate{Tokens: 1 << (halfBits + 1), Per: store.RetryHorizon / time.Microsecond * time.Microsecond},
		MaxReserved: new(bucket.Tokens),
		Anchor:      bucket.AnchorFirst,
	}.Compile()
	return l
}()

// setMarker sets the marker after the payment, for a store that takes in parts. In a common take, the marker's
// answer could be lost. The store would undo the other parts, and a retry would find the marker of an unpaid take.
// With this order, a failure between both makes a retry pay again: it can charge too much, but never nothing.
//
// If another attempt with the ID has already set the marker, that attempt has paid as well, and this payment
// is refunded.
func (s *Store) setMarker(ctx context.Context, d *division, paid []store.Refund) error {
	snaps, _, err := s.inner.Take(ctx, nil, []store.Charge{d.marker.charge()}, store.Mode{Within: d.remainingTime(), Fresh: d.mode.Fresh})
	if err != nil {
		return &store.Error{Op: "take", Store: "shards", Spent: store.MaybeSpent, Err: err}
	}
	if d.replayed = d.marker.decode(snaps[0]); d.replayed {
		_ = s.inner.Refund(ctx, paid, "") // if that fails, too much stays charged
		d.replay()
	}
	return nil
}

func refundsOf(charges []store.Charge, snaps []bucket.Snapshot) (back []store.Refund) {
	for i, c := range charges {
		if c.Cost > 0 {
			back = append(back, store.Refund{Charge: c, Taken: snaps[i].Taken()})
		}
	}
	return back
}

func newMarker(mode store.Mode, charges []store.Charge) marker {
	text := strconv.AppendQuote(nil, mode.ID)
	for _, c := range charges {
		text = strconv.AppendQuote(text, c.Key)
	}
	sum := sha256.Sum256(text)
	return marker{
		on:    true,
		key:   Mark + base64.RawURLEncoding.EncodeToString(sum[:16]),
		print: int64(binary.BigEndian.Uint16(sum[16:])),
	}
}

func (m *marker) charge() store.Charge {
	cost := 1<<halfBits + m.print<<thereBits + int64(m.there)
	return store.Charge{Key: m.key, Limit: markerLimit, Cost: bucket.Tokens(cost) + 1}
}

// decode reports whether the marker was set before, and reads the amount that was found then. If its key holds
// something else, the take continues without a marker.
func (m *marker) decode(snap bucket.Snapshot) (replayed bool) {
	if snap.Allowed {
		return false
	}
	found := int64(markerLimit.Capacity()-snap.Remaining()) - 1
	if m.on = found>>thereBits == 1<<printBits|m.print; m.on {
		m.there = bucket.Tokens(found) & maxRemembered
	}
	return m.on
}
