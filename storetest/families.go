// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

const maxClearCalls = 100_000

// RunFamilies tests a store that implements [store.Clearer]. Each subtest is named after a guarantee.
func RunFamilies(t *testing.T, open Open) {
	for _, r := range []rule{
		{name: "a family is cleared, with every kind of key", check: checkClearFamily},
		{name: "every algorithm and version is cleared", check: checkClearAlgorithms},
		{name: "many buckets are cleared in several calls", check: checkClearMany},
		{name: "other families keep their tokens under concurrency", check: checkClearKeepsOthers},
		{name: "slots of a cleared family are free", check: checkClearSlots},
		{name: "holds of a cleared family return nothing", check: checkClearHolds},
		{name: "an invalid from is an error", check: checkClearFrom},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, open) })
	}
}

func clearFamilies(t *testing.T, s mete.Store, families ...string) (removed int64, calls int) {
	t.Helper()
	clearer, ok := store.As[store.Clearer](s)
	if !ok {
		t.Fatalf("%T is no store.Clearer", s)
	}
	for from := ""; ; calls++ {
		n, next, err := clearer.ClearFamilies(t.Context(), families, from)
		if err != nil {
			t.Fatalf("ClearFamilies(%q, from %q): %v", families, from, err)
		}
		if removed += n; next == "" {
			return removed, calls + 1
		}
		if from = next; calls > maxClearCalls {
			t.Fatalf("ClearFamilies(%q) has no end: %d calls, from %q", families, calls, from)
		}
	}
}

func drain(t *testing.T, s mete.Store, key string, l bucket.Limit) {
	t.Helper()
	if _, allowed, err := s.Take(t.Context(), nil, []store.Charge{charge(key, l, l.Capacity())}, mete.Mode{}); !allowed || err != nil {
		t.Fatalf("taking all from %q: allowed %v, %v", key, allowed, err)
	}
}

func missingTokens(t *testing.T, s mete.Store, key string, l bucket.Limit) bucket.Tokens {
	t.Helper()
	snaps, _, err := s.Take(t.Context(), nil, []store.Charge{charge(key, l, 0)}, mete.Mode{DryRun: true, Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	return snaps[0].Missing()
}

func checkClearFamily(t *testing.T, open Open) {
	s, l := open(t, NewClock().Now), limit(t, 5*bucket.Token, "1/1h")
	mine := []string{
		"free:ip=192.0.2.1", "free:ip=2001:db8:1:2::/64|path=/v1", "{acme}free:tenant=acme", "{acme}free:tenant=acme|#3", "free:", "free:|#12",
		"free:header:x-api-key=~k3Jd0fQ", "free:a=*?[]\\", "a*[b?]\\:x=1", "{t}a*[b?]\\:x=1",
	}
	others := []string{
		"fre:ip=192.0.2.1", "freee:ip=192.0.2.1", "free/day:ip=192.0.2.1", "{free:x=}other:x=free:", "{free}other:x=1", "other:x=free:y=1", "Free:ip=192.0.2.1",
		"free", "free:no key of a policy", "{free:ip=1", "ab:x=1", "|free:ip=1", "%66ree:ip=1", "\xff:x=1",
	}
	for _, key := range append(mine, others...) {
		drain(t, s, key, l)
	}
	if removed, _ := clearFamilies(t, s, "free:", `a*[b?]\:`, "none:"); removed != int64(len(mine)) {
		t.Errorf("%d buckets were removed, want %d", removed, len(mine))
	}
	for _, key := range mine {
		if got := missingTokens(t, s, key, l); got != 0 {
			t.Errorf("%q misses %v after its family was cleared", key, got)
		}
	}
	for _, key := range others {
		if got := missingTokens(t, s, key, l); got != l.Capacity() {
			t.Errorf("%q misses %v after another family was cleared, want %v", key, got, l.Capacity())
		}
	}
	if removed, _ := clearFamilies(t, s, "free:", `a*[b?]\:`); removed != 0 {
		t.Errorf("clearing again removed %d buckets", removed)
	}
	for _, key := range mine {
		drain(t, s, key, l)
	}
}

func checkClearAlgorithms(t *testing.T, open Open) {
	s := open(t, NewClock().Now)
	limits := limitKinds(t)
	want := int64(0)
	for name, l := range limits {
		want += 2
		drain(t, s, "free:x="+name, l)
		drain(t, s, "other:x="+name, l)
	}
	versions := versions(t)
	for _, l := range versions { // accounts of several versions in one bucket
		_, _, err := s.Take(t.Context(), nil, []store.Charge{charge("free:versions=1", l, bucket.Token)}, mete.Mode{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if removed, _ := clearFamilies(t, s, "free:", "other:"); removed != want+1 {
		t.Errorf("%d buckets were removed, want %d", removed, want+1)
	}
	for name, l := range limits {
		for _, key := range []string{"free:x=" + name, "other:x=" + name} {
			if got := missingTokens(t, s, key, l); got != 0 {
				t.Errorf("%q misses %v", key, got)
			}
		}
	}
	for i, l := range versions {
		if got := missingTokens(t, s, "free:versions=1", l); got != 0 {
			t.Errorf("version %d misses %v", i, got)
		}
	}
}

func checkClearMany(t *testing.T, open Open) {
	const takes = 40
	s, l := open(t, NewClock().Now), limit(t, bucket.Token, "1/1h")
	for i := range takes {
		charges := make([]store.Charge, store.MaxCharges)
		for j := range charges {
			charges[j] = charge(fmt.Sprintf("many:x=%02d%02d", i, j), l, bucket.Token)
		}
		if _, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{}); !allowed || err != nil {
			t.Fatal(allowed, err)
		}
	}
	drain(t, s, "one:x=1", l)
	removed, calls := clearFamilies(t, s, "many:")
	if want := int64(takes * store.MaxCharges); removed != want || calls < 2 {
		t.Errorf("%d buckets were removed in %d calls, want %d in several", removed, calls, want)
	}
	if got := missingTokens(t, s, "one:x=1", l); got != bucket.Token {
		t.Errorf("a bucket of another family misses %v", got)
	}
}

// Concurrent takes of other families keep each of their tokens spent.
func checkClearKeepsOthers(t *testing.T, open Open) {
	const takers, takes = 4, 50
	s, l := open(t, NewClock().Now), limit(t, takers*takes*bucket.Token, "1/1h")
	var all sync.WaitGroup
	for range takers {
		all.Go(func() {
			for range takes {
				charges := []store.Charge{charge("free:x=1", l, bucket.Token), charge("other:x=1", l, bucket.Token)}
				if _, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{}); !allowed || err != nil {
					t.Errorf("allowed %v, %v", allowed, err)
				}
			}
		})
	}
	for range 3 {
		clearFamilies(t, s, "free:")
	}
	all.Wait()
	if got := missingTokens(t, s, "other:x=1", l); got != l.Capacity() {
		t.Errorf("the bucket of another family misses %v, want %v", got, l.Capacity())
	}
	clearFamilies(t, s, "free:")
	if got := missingTokens(t, s, "free:x=1", l); got != 0 {
		t.Errorf("the cleared bucket misses %v", got)
	}
}

func checkClearFrom(t *testing.T, open Open) {
	clearer, _ := store.As[store.Clearer](open(t, NewClock().Now))
	for _, from := range []string{"x", "-1", "99999999999999999999", "x/y/z"} {
		if _, next, err := clearer.ClearFamilies(t.Context(), []string{"free:"}, from); !errors.Is(err, store.ErrFrom) {
			t.Errorf("from %q: next %q, %v, want %v", from, next, err, store.ErrFrom)
		}
	}
}
