// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// widened reports whether a table of the store has second words.
func (s *Store) widened() bool {
	for i := range s.shards {
		if s.shards[i].table.Load().ats != nil {
			return true
		}
	}
	return false
}

// Token buckets under the process's clock take one word each after any operation. Other buckets take two until
// none is left in their shard.
func TestTable_SecondWords(t *testing.T) {
	s := newStore(t, Config{})
	l := limitOf(t, 5*bucket.Token, bucket.Token, time.Hour)
	both := []store.Charge{{Key: "a", Limit: l, Cost: bucket.Token}, {Key: "b", Limit: l, Cost: 9 * bucket.Token}}
	for _, mode := range []mete.Mode{{}, {DryRun: true}, {UpTo: true}, {ID: "1"}} {
		if _, _, err := s.Take(t.Context(), nil, both, mode); err != nil {
			t.Fatal(err)
		}
	}
	s.take1(t, "c", l, bucket.Token)
	s.take1(t, "c", l, bucket.Token)
	if err := s.Refund(t.Context(), []mete.Refund{{Charge: store.Charge{Key: "c", Limit: l, Cost: bucket.Token}}}, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(t.Context(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	s.sweepAll()
	if s.widened() {
		t.Error("a table of token buckets has second words")
	}
	if got := s.take1(t, "a", l, 0).Remaining(); got != 5*bucket.Token {
		t.Errorf("%v of 5 are left after a reset", got)
	}
	if got := s.take1(t, "c", l, 0).Remaining(); got != 4*bucket.Token {
		t.Errorf("%v of 5 are left after 2 takes and a refund", got)
	}

	window, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 5 * bucket.Token, Per: time.Hour}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s.take1(t, "window", window, 2*bucket.Token)
	if !s.widened() {
		t.Error("a sliding window is kept in one word")
	}
	if got := s.take1(t, "window", window, 0).Remaining(); got != 3*bucket.Token {
		t.Errorf("%v of 5 are left after 2", got)
	}
	s.pass(3 * time.Hour)
	s.sweepAll()
	if s.widened() {
		t.Error("a table has second words without a bucket that needs one")
	}
	checkInvariants(t, s)
}

// A restored bucket may have a future instant, even under a clock that never steps back. Until then it keeps
// its content, and has no debt for its refill.
func TestRestore_InstantsToCome(t *testing.T) {
	now := bucket.At(time.Now()) + 3_600_000_000
	s := newStore(t, Config{Now: func() bucket.Instant { return now }})
	l := limitOf(t, 5*bucket.Token, bucket.Token, time.Second)
	now += 600_000_000
	s.take1(t, "k", l, bucket.Token)
	now -= 600_000_000
	path := filepath.Join(t.TempDir(), "buckets")
	if err := s.Save(path); err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if got := restored.take1(t, "k", l, 4*bucket.Token); got.Allowed != want {
			t.Errorf("4 of a bucket that holds %v: allowed %v, want %v", got.Remaining(), got.Allowed, want)
		}
	}
	restored.pass(601 * time.Second)
	if got := restored.take1(t, "k", l, bucket.Token); !got.Allowed || got.Remaining() > bucket.Token {
		t.Errorf("1 s after the instant: allowed %v, %v are left", got.Allowed, got.Remaining())
	}
	checkInvariants(t, restored)
}
