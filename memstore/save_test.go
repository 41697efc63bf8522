// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// saved saves s to a new file.
func saved(tb testing.TB, s *memstore.Store) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "buckets")
	if err := s.Save(path); err != nil {
		tb.Fatal(err)
	}
	return path
}

func mustRestore(tb testing.TB, path string, c memstore.Config) *memstore.Store {
	tb.Helper()
	s, err := memstore.Restore(path, c)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Only the owner can read the file. It replaces the previous one, and no other file remains.
func TestSave_ReplacesTheFile(t *testing.T) {
	clock := storetest.NewClock()
	s, limit := mustNew(t, memstore.Config{Now: clock.Now}), mustLimit(t, 5*bucket.Token, 1)
	path := filepath.Join(t.TempDir(), "a*b.buckets")
	for i := range 3 {
		take(t, s, "k", limit, bucket.Token)
		if err := s.Save(path); err != nil {
			t.Fatal(err)
		}
		restored := mustRestore(t, path, memstore.Config{Now: clock.Now})
		if got, want := peek(t, restored, "k", limit).Remaining(), bucket.Tokens(4-i)*bucket.Token; got != want {
			t.Errorf("after %d takes, %v remain in the file, want %v", i+1, got, want)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file's mode is %v, error %v, want that only the owner can read it", info.Mode(), err)
		}
	}
	only(t, path)
}

// only checks that the directory contains only the file.
func only(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("the directory has %v, error %v, want %s alone", entries, err, filepath.Base(path))
	}
}

func peek(t testing.TB, s mete.Store, key string, limit bucket.Limit) bucket.Snapshot {
	t.Helper()
	snaps, _, err := s.Take(t.Context(), nil, []store.Charge{{Key: key, Limit: limit}}, mete.Mode{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	return snaps[0]
}

func TestSave_Fails(t *testing.T) {
	s, dir := mustNew(t, memstore.Config{}), t.TempDir()
	if err := s.Save(filepath.Join(dir, "none", "buckets")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the directory: %v, want that it does not exist", err)
	}
	path := filepath.Join(dir, "taken")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(path); err == nil {
		t.Error("there is a directory of that name, and no error")
	}
	only(t, path)
	lost := mustNew(t, memstore.Config{Now: func() bucket.Instant { return 1 << 61 }})
	if err := lost.Save(filepath.Join(dir, "taken", "x")); err == nil {
		t.Error("the clock shows the year 75000, and no error")
	}
}

// slowLimits returns limits of each kind that refill nothing during a test.
func slowLimits(tb testing.TB, tokens bucket.Tokens) []bucket.Limit {
	tb.Helper()
	rate := bucket.Rate{Tokens: tokens, Per: 1000 * time.Hour}
	var limits []bucket.Limit
	for _, spec := range []bucket.Spec{
		{Capacity: tokens, Rate: rate},
		{Capacity: bucket.Token, Rate: rate, Queue: tokens - bucket.Token},
		{Algorithm: bucket.AlgorithmStepped, Capacity: tokens, Rate: rate, Anchor: bucket.AnchorFirst},
		{Algorithm: bucket.AlgorithmSlidingWindow, Rate: rate},
		{Algorithm: bucket.AlgorithmSlidingLog, Rate: rate},
	} {
		l, _, err := spec.Compile()
		if err != nil {
			tb.Fatal(err)
		}
		limits = append(limits, l)
	}
	return limits
}

// During takes, a save contains all takes before its start, and no takes after its end. The restored store then
// admits the rest.
func TestSave_WhileTakesGoOn(t *testing.T) {
	const keys, tokens = 60, 2000
	limits := slowLimits(t, tokens*bucket.Token)
	s, dir := mustNew(t, memstore.Config{}), t.TempDir()
	var begun, taken [keys]atomic.Int64 // counted before the take, and after it
	key := func(i int) string { return fmt.Sprintf("k%02d", i) }
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for n := w; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				i := n * (1 + w) % (keys - len(limits))
				ask := []int{i, i + len(limits)}[:1+n%3/2] // one bucket, or two together
				var charges []store.Charge
				for _, i := range ask {
					charges = append(charges, store.Charge{Key: key(i), Limit: limits[i%len(limits)], Cost: bucket.Token})
					begun[i].Add(1)
				}
				_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
				if err != nil {
					t.Error(err)
				}
				for _, i := range ask {
					if allowed {
						taken[i].Add(1)
					} else {
						begun[i].Add(-1)
					}
				}
			}
		})
	}
	const rounds = 6
	var before, after [rounds][keys]int64
	path := func(round int) string { return filepath.Join(dir, fmt.Sprint(round)) }
	for round := range rounds {
		for i := range keys {
			before[round][i] = taken[i].Load()
		}
		if err := s.Save(path(round)); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			after[round][i] = begun[i].Load()
		}
	}
	close(stop)
	wg.Wait()
	for round := range rounds {
		restored := mustRestore(t, path(round), memstore.Config{})
		for i := range keys {
			limit, rest := limits[i%len(limits)], int64(0)
			for take(t, restored, key(i), limit, bucket.Token).Allowed {
				rest++
			}
			if least, most := max(tokens-after[round][i], 0), tokens-before[round][i]; rest < least || rest > most {
				t.Errorf("round %d, %v: %d are left of %d; %d were taken before the save, and %d when it ended",
					round, limit, rest, tokens, before[round][i], after[round][i])
			}
		}
		memstore.CheckInvariants(t, restored)
	}
}

func TestSave_Together(t *testing.T) {
	s, limit := mustNew(t, memstore.Config{}), mustLimit(t, 5*bucket.Token, 1)
	path := filepath.Join(t.TempDir(), "buckets")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				take(t, s, "k", limit, bucket.Token)
				if err := s.Save(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if take(t, mustRestore(t, path, memstore.Config{}), "k", limit, bucket.Token).Allowed {
		t.Error("20 takes from 5 tokens, and another")
	}
	only(t, path)
}
