// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/store"
)

// TestHeld_Bounds bounds the number of held buckets. Each is held for its time, or until it is seen free.
func TestHeld_Bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h held
		is := func(key string) bool { return h.holdsAny([]store.Charge{{Key: "another"}, {Key: key}}) }
		if is("k") {
			t.Error("a bucket is held, and none was locked")
		}
		h.add(map[string]holder{"k": 1})
		for i := range 2 * maxHeld {
			h.add(map[string]holder{fmt.Sprint(i): 1})
		}
		if len(h.keys) != maxHeld {
			t.Errorf("%d buckets are held, want %d", len(h.keys), maxHeld)
		}
		if !is("k") || is(fmt.Sprint(2*maxHeld-1)) {
			t.Error("a bucket beyond the bound is held in place of one that was")
		}
		h.add(map[string]holder{"k": 2}) // known buckets are always allowed
		if by := h.holders([]*ask{{charges: []store.Charge{{Key: "k"}}}})["k"]; by != 2 {
			t.Errorf("held by %d, want 2", by)
		}
		h.remove([]string{"k"})
		if is("k") {
			t.Error("a bucket is held that was seen not to be")
		}
		time.Sleep(heldFor)
		if is("0") || h.mayHold() {
			t.Error("a bucket is held after its time")
		}
		h.add(map[string]holder{"k": 1})
		if len(h.keys) != 1 || !is("k") {
			t.Errorf("%d buckets are kept, want those that are over forgotten", len(h.keys))
		}
	})
}
