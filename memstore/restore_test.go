// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// charge returns random charges of keys of each algorithm. One in versions keys has another version of its
// limit; with 0, none has.
func charge(r *rand.Rand, limits []bucket.Limit, versions int) ([]store.Charge, mete.Mode) {
	var charges []store.Charge
	for _, k := range r.Perm(60)[:1+r.IntN(3)] {
		l := limits[k%len(limits)]
		if versions > 0 && r.IntN(versions) == 0 {
			l = limits[(k+1+r.IntN(3))%len(limits)]
		}
		key := strconv.Itoa(k)
		charges = append(charges, store.Charge{Key: key, Limit: l.ForKey(key), Cost: bucket.Tokens(r.Int64N(6000))})
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	mode := mete.Mode{DryRun: r.IntN(8) == 0}
	switch r.IntN(6) {
	case 0:
		mode.MaxWait = time.Duration(r.Int64N(30_000)) * time.Microsecond
	case 1:
		mode.MaxWait = bucket.Forced
	}
	return charges, mode
}

// A restored store makes the same decisions as the saved one, for every algorithm. It does so near the
// epoch, years after its start, and for accounts of several versions.
func TestRestore_GoesOn(t *testing.T) {
	limits := everyAlgorithm(t)
	for seed := range uint64(12) {
		r := rand.New(testseed.PCG(seed, 7))
		clock := storetest.NewClock()
		if seed%3 == 0 {
			clock.Set(bucket.Instant(r.Int64N(50_000)))
		}
		s := mustNew(t, memstore.Config{Now: clock.Now})
		if seed%4 == 0 {
			clock.Advance(1 << 47) // windows do not fit their slots any more
		}
		for range 5 {
			for range 300 {
				clock.Advance(r.Int64N(1 << r.IntN(12)))
				charges, mode := charge(r, limits, 8)
				s.Take(t.Context(), nil, charges, mode)
			}
			path := saved(t, s)
			clock.Advance(r.Int64N(1 << r.IntN(16)))
			restored := mustRestore(t, path, memstore.Config{Now: clock.Now})
			for step := range 300 {
				charges, mode := charge(r, limits, 8)
				if step < 60 { // before anything else: look at each bucket
					key := strconv.Itoa(step)
					charges, mode = []store.Charge{{Key: key, Limit: limits[step%len(limits)].ForKey(key)}}, mete.Mode{DryRun: true}
				} else {
					clock.Advance(r.Int64N(1 << r.IntN(12)))
				}
				want, wantAllowed, _ := s.Take(t.Context(), nil, charges, mode)
				got, allowed, err := restored.Take(t.Context(), nil, charges, mode)
				if err != nil || allowed != wantAllowed || !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d at %d: %+v %+v:\n got %v %+v, error %v\nwant %v %+v", seed, step, clock.Now(), mode, charges, allowed, got, err, wantAllowed, want)
				}
			}
			memstore.CheckInvariants(t, restored)
		}
	}
}

// A store saved at its bound is restored with another bound. No limited client is reset, and keys in an
// overflow bucket get no new bucket.
func TestRestore_AtTheBound(t *testing.T) {
	clock := storetest.NewClock()
	limit := mustLimit(t, bucket.Token, 1)
	s := mustNew(t, memstore.Config{MaxKeys: 50, Now: clock.Now})
	for i := range 60 {
		take(t, s, strconv.Itoa(i), limit, bucket.Token)
	}
	for _, maxKeys := range []int{1, 50, 1000} {
		restored := mustRestore(t, saved(t, s), memstore.Config{MaxKeys: maxKeys, Now: clock.Now})
		if got := restored.Stats(); got.Keys != 51 || got.MaxKeys != int64(maxKeys) {
			t.Errorf("%d keys of %d, want 50 and an overflow bucket, of %d", got.Keys, got.MaxKeys, maxKeys)
		}
		for i := range 70 {
			if take(t, restored, strconv.Itoa(i), limit, bucket.Token).Allowed {
				t.Errorf("max keys %d: key %d has spent its token, or the one that new keys share", maxKeys, i)
			}
		}
		memstore.CheckInvariants(t, restored)
	}
}

// With a clock that steps back, the model admits everything that the restored store admits. Buckets that were
// full when saved stay full, unless the clock steps back beyond the save, which it does not here.
func TestRestore_AdmitsNoMoreWhereTheClockStepsBack(t *testing.T) {
	limits := everyAlgorithm(t)
	for seed := range uint64(12) {
		r := rand.New(testseed.PCG(seed, 8))
		clock := storetest.NewClock()
		s, model := mustNew(t, memstore.Config{Now: clock.Now}), storetest.NewModel(clock.Now)
		last := clock.Now()
		for step := range 2000 {
			if r.IntN(10) == 0 {
				clock.Set(max(clock.Now()-bucket.Instant(r.Int64N(1<<r.IntN(16))), last))
			} else {
				clock.Advance(r.Int64N(1 << r.IntN(14)))
			}
			if step%100 == 99 {
				s, last = mustRestore(t, saved(t, s), memstore.Config{Now: clock.Now}), clock.Now()
			}
			charges, mode := charge(r, limits, 0)
			if mode.DryRun {
				continue
			}
			if _, allowed, _ := s.Take(t.Context(), nil, charges, mode); !allowed {
				continue
			}
			if _, allowed, _ := model.Take(t.Context(), nil, charges, mode); !allowed {
				t.Fatalf("seed %d, step %d at %d: %+v %+v is admitted, and not by the model", seed, step, clock.Now(), mode, charges)
			}
		}
	}
}

// If the clock was set back in between, no time has passed. No deficit is lost, and no client waits for the old
// time, except for the start of windows.
func TestRestore_ClockSetBack(t *testing.T) {
	r := rand.New(testseed.PCG(1, 9))
	for i, limit := range everyAlgorithm(t) {
		if limit.Capacity() == bucket.MaxWindowTokens {
			continue
		}
		limit = limit.ForKey("k")
		_, p := limit.Refill()
		for range 25 {
			clock := storetest.NewClock()
			clock.Advance(r.Int64N(1 << 20))
			s := mustNew(t, memstore.Config{Now: clock.Now})
			for range 100 {
				clock.Advance(r.Int64N(1000))
				take(t, s, "k", limit, bucket.Token)
			}
			for take(t, s, "k", limit, bucket.Token).Allowed {
			}
			wait := take(t, s, "k", limit, bucket.Token).RetryAfter
			path := saved(t, s)
			clock.Set(clock.Now() - 1 - bucket.Instant(r.Int64N(1<<r.IntN(50))))
			restored := mustRestore(t, path, memstore.Config{Now: clock.Now})
			again := take(t, restored, "k", limit, bucket.Token)
			most := wait
			if limit.Algorithm() == bucket.AlgorithmStepped && limit.Anchor() != bucket.AnchorFirst || limit.Algorithm() == bucket.AlgorithmSlidingWindow {
				most += 2 * time.Duration(p) * time.Microsecond
			}
			if again.Allowed || again.RetryAfter < wait || again.RetryAfter > most {
				t.Fatalf("limit %d, %v: after %v, allowed %v; it was to be admitted after %v and must not wait longer than %v", i, limit, again.RetryAfter, again.Allowed, wait, most)
			}
			clock.Advance(again.RetryAfter.Microseconds())
			if !take(t, restored, "k", limit, bucket.Token).Allowed {
				t.Fatalf("limit %d, %v: denied after the %v it was told to wait", i, limit, again.RetryAfter)
			}
			memstore.CheckInvariants(t, restored)
		}
	}
}

// On the process's clock, from a store that was an hour in the future.
func TestRestore_ProcessClock(t *testing.T) {
	limit := mustLimit(t, 5*bucket.Token, bucket.Token/100)
	for _, ahead := range []time.Duration{0, time.Hour} {
		s := mustNew(t, memstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now().Add(ahead)) }})
		for range 5 {
			take(t, s, "k", limit, bucket.Token)
		}
		restored := mustRestore(t, saved(t, s), memstore.Config{})
		got := take(t, restored, "k", limit, bucket.Token)
		if got.Allowed || got.RetryAfter > 100*time.Second || got.RetryAfter < 50*time.Second {
			t.Errorf("saved %v ahead: allowed %v, retry after %v; want denied for about 100 s", ahead, got.Allowed, got.RetryAfter)
		}
	}
}

func TestRestore_NoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := memstore.Restore(path, memstore.Config{}); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, memstore.ErrFile) {
		t.Errorf("%v, want that there is none", err)
	}
	if _, err := memstore.Restore(saved(t, mustNew(t, memstore.Config{})), memstore.Config{MaxKeys: -1}); err == nil || errors.Is(err, memstore.ErrFile) {
		t.Errorf("max keys -1: %v, want that it is out of bounds", err)
	}
}

// A file that differs from Save's output in any byte is rejected.
func TestRestore_Refuses(t *testing.T) {
	clock := storetest.NewClock()
	s := mustNew(t, memstore.Config{Now: clock.Now})
	for i, l := range everyAlgorithm(t) {
		key := fmt.Sprint("k", i)
		take(t, s, key, l.ForKey(key), bucket.Token)
	}
	whole, err := os.ReadFile(saved(t, s))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	refused := func(what, data, want string) {
		t.Helper()
		path := filepath.Join(dir, "buckets")
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := memstore.Restore(path, memstore.Config{Now: clock.Now})
		if !errors.Is(err, memstore.ErrFile) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path+": ") ||
			!strings.HasSuffix(err.Error(), "move it away to start with full buckets") {
			t.Errorf("%s: %v, want that %s, where, and what to do", what, err, want)
		}
	}
	text := string(whole)
	refused("nothing", "", "file is truncated")
	for n := range whole {
		refused(fmt.Sprintf("the first %d of %d bytes", n, len(whole)), text[:n], "file is truncated")
		changed := slices.Clone(whole)
		changed[n] ^= 1 << (n % 8)
		refused(fmt.Sprintf("byte %d of %d is %q", n, len(whole), changed[n]), string(changed), "file is")
	}
	refused("more", text+"\n", "data after the end")
	refused("twice", text+text, "data after the end")
	refused("text", "rules:\n  - name: everyone\n", "file is not in the memstore format")
	refused("an older version", strings.Replace(text, "memstore 3", "memstore 1", 1), "file has format 1, and this program reads format 3")
	refused("a newer version", strings.Replace(text, "memstore 3", "memstore 4", 1), "file has format 4, and this program reads format 3")
	refused("no version", strings.Replace(text, "memstore 3", "memstore -2", 1), "file is not in the memstore format")
	refused("an endless line", strings.Repeat("mete memstore", 1<<17), "file is not in the memstore format")
	refused("a block as long as can be said", text[:strings.Index(text, "\n")+1]+"h\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "file is damaged")
	refused("a number without an end", text[:strings.Index(text, "\n")+1]+"h"+strings.Repeat("\xff", 20), "file is damaged")
	if _, err := memstore.Restore(dir, memstore.Config{}); !errors.Is(err, memstore.ErrFile) {
		t.Errorf("a directory: %v, want it refused", err)
	}
}

// A derived key is specific to its purpose and its store, and survives the process.
func TestDeriveKey(t *testing.T) {
	a, b := mustNew(t, memstore.Config{}), mustNew(t, memstore.Config{})
	key := func(s *memstore.Store, purpose string) [32]byte {
		t.Helper()
		key, err := s.DeriveKey(t.Context(), purpose)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	if key(a, "x") == key(b, "x") || key(a, "x") == key(a, "y") {
		t.Error("two stores or two purposes have one key")
	}
	if got := key(mustRestore(t, saved(t, a), memstore.Config{}), "x"); got != key(a, "x") {
		t.Errorf("after a restart the key is %x, want %x", got, key(a, "x"))
	}
}
