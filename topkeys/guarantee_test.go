// SPDX-License-Identifier: Apache-2.0

package topkeys_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/topkeys"
)

// checkGuarantee compares a list with the exact numbers, as in the package documentation. Dropped records have no
// known key, so counts may be too low by their number.
func checkGuarantee(list topkeys.List, exact map[string]uint64, m int) error {
	total := uint64(0)
	for _, n := range exact {
		total += n
	}
	if list.Total+list.Dropped != total {
		return fmt.Errorf("total %d and dropped %d, want %d in all", list.Total, list.Dropped, total)
	}
	most := list.Total / uint64(m)
	if list.Unlisted > most {
		return fmt.Errorf("unlisted %d, want at most N/m = %d", list.Unlisted, most)
	}
	listed := map[string]bool{}
	for i, k := range list.Keys {
		if listed[k.Key] {
			return fmt.Errorf("%s is listed twice", k.Key)
		}
		listed[k.Key] = true
		switch n := exact[k.Key]; {
		case k.Error > most:
			return fmt.Errorf("%s: error %d, want at most N/m = %d", k.Key, k.Error, most)
		case k.Count+list.Dropped < n || k.Count-k.Error > n || k.Error > k.Count:
			return fmt.Errorf("%s: count %d with error %d, truly %d", k.Key, k.Count, k.Error, n)
		case i > 0 && k.Count > list.Keys[i-1].Count:
			return fmt.Errorf("%s: count %d behind one of %d", k.Key, k.Count, list.Keys[i-1].Count)
		}
	}
	for key, n := range exact {
		if n > list.Unlisted+list.Dropped && !listed[key] {
			return fmt.Errorf("%s was recorded %d times and is not listed; unlisted %d", key, n, list.Unlisted)
		}
	}
	return nil
}

func TestTop_KeepsItsGuaranteeForEveryStream(t *testing.T) {
	const n = 15_000
	for _, s := range streams() {
		for _, m := range []int{1, 2, 7, 100} {
			r := rand.New(testseed.PCG(1, uint64(m)))
			tr := newTracker(t, topkeys.Config{Counters: m})
			exact := map[string]uint64{}
			for _, key := range s.keys(r, n, m) {
				exact[key]++
				tr.Record(0, topkeys.KindDenied, "free", key, 0)
			}
			list := tr.Top(0, "free", topkeys.KindDenied, 0)
			if err := checkGuarantee(list, exact, m); err != nil {
				t.Errorf("%s, %d counters: %v", s.name, m, err)
			}
			if len(list.Keys) > m {
				t.Errorf("%s, %d counters: %d keys", s.name, m, len(list.Keys))
			}
		}
	}
}

// Records fall into several parts of the window; a list covers the parts since its start.
func TestTop_GuaranteeOverTime(t *testing.T) {
	const n, m = 10_000, 20
	const window = time.Minute
	for _, s := range streams() {
		r := rand.New(testseed.PCG(2, 3))
		tr := newTracker(t, topkeys.Config{Counters: m, Window: window})
		keys := s.keys(r, n, m)
		at := make([]bucket.Instant, n)
		now := bucket.Instant(0)
		for i, key := range keys {
			now = now.Add(time.Duration(r.Int64N(int64(5 * window / n)))) // two and a half windows in all
			at[i] = now
			tr.Record(now, topkeys.KindDenied, "free", key, 0)
			if i%(n/5) != 0 {
				continue
			}
			for _, asked := range []time.Duration{0, window / 2, window} {
				list := tr.Top(now, "free", topkeys.KindDenied, asked)
				exact := map[string]uint64{}
				for j := range keys[:i+1] {
					if at[j] >= list.Since {
						exact[keys[j]]++
					}
				}
				if err := checkGuarantee(list, exact, m); err != nil {
					t.Errorf("%s, window %v, after %d records: %v", s.name, asked, i+1, err)
				}
				covered := time.Duration(list.Until-list.Since) * time.Microsecond
				least := min(time.Duration(now)*time.Microsecond, max(asked, window/2))
				if asked == 0 {
					least = min(time.Duration(now)*time.Microsecond, window)
				}
				if covered < least || covered > window*3/2 {
					t.Errorf("%s, window %v: the list is about %v", s.name, asked, covered)
				}
			}
		}
	}
}

// Concurrent records go to several lanes, or are dropped and counted. The merged list keeps the guarantee.
func TestTop_GuaranteeWithConcurrentRecords(t *testing.T) {
	const writers, n, m = 4, 5_000, 20
	for _, s := range streams() {
		tr := newTracker(t, topkeys.Config{Counters: m})
		exact := map[string]uint64{}
		var wg sync.WaitGroup
		for w := range writers {
			keys := s.keys(rand.New(testseed.PCG(4, uint64(w))), n, m)
			for _, key := range keys {
				exact[key]++
			}
			wg.Go(func() {
				for i, key := range keys {
					tr.Record(0, topkeys.KindDenied, "free", key, 0)
					if i%1000 == 0 {
						tr.Top(0, "free", topkeys.KindDenied, 0)
						tr.Stats()
					}
				}
			})
		}
		wg.Wait()
		if err := checkGuarantee(tr.Top(0, "free", topkeys.KindDenied, 0), exact, m); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if s := tr.Stats(); s.Recorded+s.Dropped != writers*n {
			t.Errorf("stats %+v, want %d records", s, writers*n)
		}
	}
}

// FuzzTop checks the guarantee for any order of few keys and any end of a part.
func FuzzTop(f *testing.F) {
	f.Add(uint8(3), []byte("abcabcabcd"))
	f.Add(uint8(1), []byte("aabbaabb\xff\xffab\xffaaa"))
	f.Add(uint8(2), []byte("abcabdabeabf\xffg\xffh"))
	f.Fuzz(func(t *testing.T, counters uint8, keys []byte) {
		m := int(counters)%8 + 1
		tr := newTracker(t, topkeys.Config{Counters: m})
		var at []bucket.Instant
		now := bucket.Instant(0)
		for _, k := range keys {
			if k == 0xff { // half of a part of the window goes by
				now = now.Add(topkeys.DefaultWindow / 4)
			}
			at = append(at, now)
			tr.Record(now, topkeys.KindShadow, "r", string(rune(k)), 0)
		}
		list := tr.Top(now, "r", topkeys.KindShadow, 0)
		exact := map[string]uint64{}
		for i, k := range keys {
			if at[i] >= list.Since {
				exact[string(rune(k))]++
			}
		}
		if err := checkGuarantee(list, exact, m); err != nil {
			t.Errorf("%d counters, %q: %v", m, keys, err)
		}
	})
}
