// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

func TestTake_AllocatesNothing(t *testing.T) {
	inner, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s := guarded(t, inner, guard.Config{})
	dst := make([]bucket.Snapshot, 0, 1)
	for name, cost := range map[string]bucket.Tokens{"allowed": 0, "denied": 11} {
		charges := []store.Charge{charge(name, slow(t), cost)}
		if got := testing.AllocsPerRun(100, func() { s.Take(t.Context(), dst, charges, mete.Mode{}) }); got != 0 {
			t.Errorf("a take that is %s allocates %v times", name, got)
		}
	}
}

// TestTake_AllocatesNothingOnceAllIsWell proves that only recent failures cause allocations, in gobreaker.
func TestTake_AllocatesNothingOnceAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{})
		p.inner.Store = yes{}
		p.fails(errIll)
		p.take(t.Context(), 1)
		p.inner.fail = nil
		time.Sleep(guard.Window + 1)
		p.take(t.Context(), 1)
		dst, charges := make([]bucket.Snapshot, 0, 1), []store.Charge{charge("k", p.limit, 1)}
		if got := testing.AllocsPerRun(100, func() { p.guard.Take(t.Context(), dst, charges, mete.Mode{}) }); got != 0 {
			t.Errorf("a take allocates %v times", got)
		}
	})
}
