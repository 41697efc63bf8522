// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func slidingLog(t testing.TB, tokens bucket.Tokens, per time.Duration) bucket.Limit {
	t.Helper()
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: tokens, Per: per}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLog_IsBounded: beyond MaxLogEntries the two newest entries are merged at the later instant. The log then
// admits at most as much as one with all entries.
func TestLog_IsBounded(t *testing.T) {
	const window = 20_000_000 // twice as long as the bound fills in
	l := slidingLog(t, bucket.MaxLogTokens, window*time.Microsecond)
	var s bucket.State
	var all []admission
	live := func(now int64) (sum int64) {
		for len(all) > 0 && all[0].at <= now-window {
			all = all[1:]
		}
		for _, e := range all {
			sum += e.cost
		}
		return sum
	}
	denied, most := 0, 0
	for i := range int64(32_000) {
		now := i * 1000
		v := l.SpendOn(&s, bucket.Instant(now), 800, 0)
		most = max(most, len(s.Log.Entries()))
		if i%500 == 0 && s.Spent < live(now) {
			t.Fatalf("after %d takes the log has forgotten some: %d of %d", i, s.Spent, live(now))
		}
		if !v.Allowed() {
			if denied++; v.RetryAfter() <= 0 || v.RetryAfter() > window*time.Microsecond {
				t.Fatalf("denied with a wait of %v in a window of %d µs", v.RetryAfter(), window)
			}
			continue
		}
		all = append(all, admission{now, 800})
	}
	if most != bucket.MaxLogEntries || denied == 0 {
		t.Errorf("%d entries at most, %d denied: want the bound of %d reached, and the limit", most, denied, bucket.MaxLogEntries)
	}
	checkInvariants(t, l, bucket.State{}, s)
	// Merged entries expire together, at the instant of the newest.
	after := l.Peek(s, s.AsOf, 0, 0).FullAfter()
	if after != window*time.Microsecond || l.Full(s, s.AsOf+window-1) || !l.Full(s, s.AsOf+window) {
		t.Errorf("full after %v, want exactly one window after the newest", after)
	}
}

func TestNewLog_ReadsWhatEntriesWrote(t *testing.T) {
	l := slidingLog(t, 10_000, time.Minute)
	var s bucket.State
	for i := range 5 {
		s, _ = l.Take(s, bucket.Instant(i)*1e6, bucket.Tokens(i+1)*500)
	}
	again := s
	again.Log = bucket.NewLog(s.Log.Entries())
	for _, at := range []bucket.Instant{4e6, 60e6 - 1, 60e6, 62e6, 64e6 - 1, 64e6} {
		if got, want := l.Peek(again, at, 9000, 0), l.Peek(s, at, 9000, 0); got != want {
			t.Errorf("at %d: %+v, want %+v", at, got, want)
		}
	}
	var none *bucket.Log
	if none.Entries() != nil || len(bucket.NewLog(nil).Entries()) != 0 {
		t.Error("an empty log has entries")
	}
}

// TestLog_ForgetsInPlace: a bucket in constant use does not grow.
func TestLog_ForgetsInPlace(t *testing.T) {
	l := slidingLog(t, 10_000, time.Second)
	var s bucket.State
	for i := range bucket.Instant(10_000) {
		l.SpendOn(&s, i*100_000, bucket.Token, 0)
		if n := cap(s.Log.Entries()); n > 64 {
			t.Fatalf("after %d takes of ten a second the log holds memory for %d entries", i, n)
		}
	}
}
