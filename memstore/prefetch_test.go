// SPDX-License-Identifier: Apache-2.0

package memstore

import "testing"

// A prefetch changes nothing, and does not fault behind the last slot.
func TestPrefetch_ChangesNothing(t *testing.T) {
	slots := make([]slot, 3)
	for i := range slots {
		slots[i] = slot{word: 1, h0: 2, tag: 3}
		prefetch(&slots[i])
	}
	prefetch(nil)
	for i, got := range slots {
		if want := (slot{word: 1, h0: 2, tag: 3}); got != want {
			t.Errorf("slot %d is %+v, want %+v", i, got, want)
		}
	}
}
