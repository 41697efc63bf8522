// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"testing"

	"github.com/metehq/mete/bucket"
)

// The number of records is bounded, and the newest stay: of two takes with one ID, the later stays when the
// expired one is removed.
func TestIDs_AreBounded(t *testing.T) {
	most := MaxIDs / len(ids{})
	stripe := idStripe{known: map[hash]*idRecord{}}
	again := hash{h1: 1}
	stripe.record(&idRecord{id: again, until: 1 << 40}, 0)
	for i := range 5 * most {
		now := bucket.Instant(i)
		if i == most/2 { // the first is still in order
			stripe.record(&idRecord{id: again, until: 1 << 40}, now)
		}
		stripe.record(&idRecord{id: hash{h0: uint64(i)}, until: 1 << 40}, now)
		if i == most+most/4 && stripe.known[again] == nil {
			t.Error("a take is forgotten with an older one of the same ID")
		}
		if kept := len(stripe.order) - stripe.next; kept > most || len(stripe.known) > most || len(stripe.order) > 2*most+2 {
			t.Fatalf("after %d: %d are kept, %d known, in order %d; want at most %d", i, kept, len(stripe.known), len(stripe.order), most)
		}
	}
	if stripe.known[hash{h0: uint64(5*most - 1)}] == nil || stripe.known[hash{h0: uint64(4*most + 1)}] == nil {
		t.Error("newer takes are forgotten before older ones")
	}
}
