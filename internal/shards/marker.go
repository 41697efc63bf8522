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

// A marker makes a take with an ID known to all who share the store. How a cost
// is divided depends on what the shards hold, so a store could not recognize the
// take by its keys when it comes again. The marker is a bucket of its
// own, taken in the same step, with a cost that fits once: it refills all of it
// after [RetryHorizon], to the microsecond, and whoever comes sooner finds in it
// what was admitted.
type marker struct {
	on    bool
	key   string
	print int64 // of the ID and the keys
	there bucket.Tokens
}

// The cost of a marker is more than half of what it holds, and above that half
// it says what it is the mark of. The print tells it from a mark that another
// take left where a store that is full of keys made them share a bucket. Below
// it is what a take with UpTo found.
const (
	thereBits = 35
	printBits = 16
	halfBits  = thereBits + printBits

	// maxRemembered bounds what a take with both UpTo and an ID gets of a limit
	// with shards: 34 million tokens.
	maxRemembered bucket.Tokens = 1<<thereBits - 1
)

var markerLimit = func() bucket.Limit {
	l, _, _ := bucket.Spec{ // of constants: it compiles
		Algorithm:   bucket.Stepped,
		Capacity:    1 << (halfBits + 1),
		Rate:        bucket.Rate{Tokens: 1 << (halfBits + 1), Per: store.RetryHorizon / time.Microsecond * time.Microsecond},
		MaxReserved: new(bucket.Tokens),
		Anchor:      bucket.AnchorFirst,
	}.Compile()
	return l
}()

// mark leaves the mark of a take in a store that takes in parts, after it has been paid.
// In one take with the payment, the answer to the part of the mark could be lost. The
// store would undo the other parts, and a retry would find the mark of a take that nobody
// has paid. This way a failure between the two makes a retry pay again: too much can be
// charged, and never nothing.
//
// Where another attempt with the ID has left the mark meanwhile, it has paid as well, and
// this payment is given back.
func (s *Store) mark(ctx context.Context, d *division, paid []store.Refund) error {
	snaps, _, err := s.inner.Take(ctx, nil, []store.Charge{d.marker.charge()}, store.Mode{Within: d.within(), Fresh: d.mode.Fresh})
	if err != nil {
		return &store.Error{Op: "take", Store: "shards", Spent: store.MaybeSpent, Err: err}
	}
	if d.replayed = d.marker.read(snaps[0]); d.replayed {
		_ = s.inner.Refund(ctx, paid, "") // where that fails, too much stays charged
		d.replay()
	}
	return nil
}

// paid returns what gives back the charges of an admitted take.
func paid(charges []store.Charge, snaps []bucket.Snapshot) (back []store.Refund) {
	for i, c := range charges {
		if c.Cost > 0 {
			back = append(back, store.Refund{Charge: c, Taken: snaps[i].Taken()})
		}
	}
	return back
}

// newMarker returns the marker of a take.
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

// read reports whether the marker was taken before, and reads what was found
// then. Where something else is in its place the take goes without.
func (m *marker) read(snap bucket.Snapshot) (replayed bool) {
	if snap.Allowed {
		return false
	}
	found := int64(markerLimit.Capacity()-snap.Remaining()) - 1
	if m.on = found>>thereBits == 1<<printBits|m.print; m.on {
		m.there = bucket.Tokens(found) & maxRemembered
	}
	return m.on
}
