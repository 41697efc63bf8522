// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// A caller may reuse the memory of its keys and charges: no call retains them. The limits cover each form of
// storage.
func TestTake_KeepsNeitherKeysNorCharges(t *testing.T) {
	rate := bucket.Rate{Tokens: 3 * bucket.Token, Per: 1000 * time.Hour}
	memory := make([]byte, 8)
	charges := make([]store.Charge, 2)
	// key overwrites the previous key with the same index.
	key := func(i int, text string) string {
		at := memory[4*i : 4*i+4]
		copy(at, text)
		return unsafe.String(&at[0], len(at))
	}
	for _, spec := range []bucket.Spec{
		{Capacity: 3 * bucket.Token, Rate: rate},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 3 * bucket.Token, Rate: rate},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
		{Algorithm: bucket.AlgorithmStepped, Capacity: 3 * bucket.Token, Rate: rate, Anchor: bucket.AnchorKey},
	} {
		limit, _, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		s := mustNew(t, memstore.Config{})
		takes := func(n int, mode mete.Mode, keys ...string) (allowed bool) {
			t.Helper()
			for i, text := range keys {
				charges[i] = store.Charge{Key: key(i, text), Limit: limit, Cost: bucket.Tokens(n) * bucket.Token}
			}
			_, allowed, err := s.Take(t.Context(), nil, charges[:len(keys)], mode)
			if err != nil {
				t.Fatal(err)
			}
			return allowed
		}
		for _, keys := range [][]string{{"aaaa"}, {"bbbb"}, {"cccc", "dddd"}, {"eeee", "ffff"}} {
			if !takes(2, mete.Mode{}, keys...) {
				t.Errorf("%v: 2 of 3 were denied to the new keys %q", limit, keys)
			}
		}
		takes(2, mete.Mode{ID: "1"}, "gggg")
		takes(2, mete.Mode{UpTo: true}, "hhhh")
		takes(3, mete.Mode{}, "iiii")
		s.TakeOne(key(0, "jjjj"), &limit, 2*bucket.Token)
		refunds := []mete.Refund{{Charge: store.Charge{Key: key(0, "iiii"), Limit: limit, Cost: bucket.Token}}}
		if err := s.Refund(t.Context(), refunds, "2"); err != nil {
			t.Fatal(err)
		}
		takes(1, mete.Mode{DryRun: true}, "kkkk")
		for _, name := range []string{"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff", "gggg", "hhhh", "iiii", "jjjj"} {
			if takes(2, mete.Mode{}, name) || !takes(1, mete.Mode{}, name) {
				t.Errorf("%v: key %q, with 1 of 3 left, was allowed 2 or denied 1", limit, name)
			}
		}
		if !takes(3, mete.Mode{}, "kkkk") {
			t.Errorf("%v: key %q was denied 3 of 3", limit, "kkkk")
		}
		memstore.CheckInvariants(t, s)
	}
}
