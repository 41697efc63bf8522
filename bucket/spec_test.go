// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"hash/fnv"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

func TestSpecCompile_BoundsOfEveryAlgorithm(t *testing.T) {
	const most, micro = bucket.MaxTokens, time.Microsecond
	stepped := func(change func(*bucket.Spec)) bucket.Spec {
		s := bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 5000, Rate: bucket.Rate{Tokens: 5000, Per: time.Minute}}
		change(&s)
		return s
	}
	window := func(a bucket.Algorithm, tokens bucket.Tokens, per time.Duration) bucket.Spec {
		return bucket.Spec{Algorithm: a, Rate: bucket.Rate{Tokens: tokens, Per: per}}
	}
	owed := func(n bucket.Tokens) *bucket.Tokens { return &n }
	leaky := bucket.Spec{Capacity: 1000, Rate: bucket.PerSecond(1000), Queue: 5000}
	with := func(s bucket.Spec, change func(*bucket.Spec)) bucket.Spec { change(&s); return s }
	for _, tt := range []struct {
		name string
		spec bucket.Spec
		ok   bool
	}{
		{"stepped", stepped(func(*bucket.Spec) {}), true},
		{"stepped, capacity 0", stepped(func(s *bucket.Spec) { s.Capacity = 0 }), true},
		{"stepped, the largest", stepped(func(s *bucket.Spec) { s.Capacity, s.Rate.Tokens = most, most }), true},
		{"stepped, the longest", stepped(func(s *bucket.Spec) { s.Rate.Per = (1<<50 - 1) * micro }), true},
		{"stepped, longer", stepped(func(s *bucket.Spec) { s.Rate.Per = 1 << 50 * micro }), false},
		{"stepped, half microseconds", stepped(func(s *bucket.Spec) { s.Rate.Per = 1500 }), false},
		{"stepped, no tokens", stepped(func(s *bucket.Spec) { s.Rate.Tokens = 0 }), false},
		{"stepped, start", stepped(func(s *bucket.Spec) { s.Start = time.Minute - micro }), true},
		{"stepped, start of the next", stepped(func(s *bucket.Spec) { s.Start = time.Minute }), false},
		{"stepped, start before", stepped(func(s *bucket.Spec) { s.Start = -micro }), false},
		{"stepped, start between microseconds", stepped(func(s *bucket.Spec) { s.Start = 1 }), false},
		{"stepped by key", stepped(func(s *bucket.Spec) { s.Anchor = bucket.AnchorKey }), true},
		{"stepped by key, start", stepped(func(s *bucket.Spec) { s.Anchor, s.Start = bucket.AnchorKey, time.Second }), false},
		{"stepped from the first, start", stepped(func(s *bucket.Spec) { s.Anchor, s.Start = bucket.AnchorFirst, time.Second }), false},
		{"unknown anchor", stepped(func(s *bucket.Spec) { s.Anchor = 3 }), false},
		{"stepped, queue", stepped(func(s *bucket.Spec) { s.Queue = 1 }), true},
		{"stepped, debt to the bound", stepped(func(s *bucket.Spec) { s.MaxReserved = owed(most - 5000) }), true},
		{"stepped, debt above", stepped(func(s *bucket.Spec) { s.MaxReserved = owed(most - 4999) }), false},
		{"unknown algorithm", stepped(func(s *bucket.Spec) { s.Algorithm = 7 }), false},
		{"window, the largest", window(bucket.AlgorithmSlidingWindow, bucket.MaxWindowTokens, (1<<47-1)*micro), true},
		{"window, larger", window(bucket.AlgorithmSlidingWindow, bucket.MaxWindowTokens+1, time.Minute), false},
		{"window, longer", window(bucket.AlgorithmSlidingWindow, 1000, 1<<47*micro), false},
		{"window, the shortest", window(bucket.AlgorithmSlidingWindow, 1, micro), true},
		{"log, the largest", window(bucket.AlgorithmSlidingLog, bucket.MaxLogTokens, (1<<47-1)*micro), true},
		{"log, larger", window(bucket.AlgorithmSlidingLog, bucket.MaxLogTokens+1, time.Minute), false},
		{"log, longer", window(bucket.AlgorithmSlidingLog, 1000, 1<<47*micro), false},
		{"log, no tokens", window(bucket.AlgorithmSlidingLog, 0, time.Minute), false},
		{"window, its own capacity", with(window(bucket.AlgorithmSlidingWindow, 1000, time.Minute), func(s *bucket.Spec) { s.Capacity = 1000 }), true},
		{"window, another capacity", with(window(bucket.AlgorithmSlidingWindow, 1000, time.Minute), func(s *bucket.Spec) { s.Capacity = 2000 }), false},
		{"log, no debt", with(window(bucket.AlgorithmSlidingLog, 1000, time.Minute), func(s *bucket.Spec) { s.MaxReserved = owed(0) }), true},
		{"log, a debt", with(window(bucket.AlgorithmSlidingLog, 1000, time.Minute), func(s *bucket.Spec) { s.MaxReserved = owed(1) }), false},
		{"log, a queue", with(window(bucket.AlgorithmSlidingLog, 1000, time.Minute), func(s *bucket.Spec) { s.Queue = 1 }), false},
		{"log, an anchor", with(window(bucket.AlgorithmSlidingLog, 1000, time.Minute), func(s *bucket.Spec) { s.Anchor = bucket.AnchorKey }), false},
		{"token bucket, a start", with(leaky, func(s *bucket.Spec) { s.Start = time.Second }), false},
		{"leaky bucket", leaky, true},
		{"leaky bucket, max reserved", with(leaky, func(s *bucket.Spec) { s.MaxReserved = owed(5000) }), false},
		{"leaky bucket, queue below 0", with(leaky, func(s *bucket.Spec) { s.Queue = -1 }), false},
		{"leaky bucket, queue above all", with(leaky, func(s *bucket.Spec) { s.Queue = most }), false},
	} {
		l, _, err := tt.spec.Compile()
		if (err == nil) != tt.ok {
			t.Errorf("%s: %+v compiled to %v, %v; want ok %v", tt.name, tt.spec, l, err, tt.ok)
		}
		if err != nil && (!errors.Is(err, bucket.ErrLimit) || l != bucket.Limit{}) {
			t.Errorf("%s: %v, %v: want the zero limit and ErrLimit", tt.name, l, err)
		}
	}
}

func TestLimit_SaysWhatItIs(t *testing.T) {
	minute := bucket.Rate{Tokens: 5000, Per: time.Minute}
	for _, tt := range []struct {
		spec bucket.Spec
		text string
		time time.Duration // for 12 tokens
	}{
		{bucket.Spec{Capacity: 20_000, Rate: minute}, "capacity 20, refill 5/1m0s", 144 * time.Second},
		{bucket.Spec{Capacity: 1000, Rate: minute, Queue: 9000}, "capacity 1, refill 5/1m0s, queue 9", 144 * time.Second},
		{bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20_000, Rate: minute}, "capacity 20, refill 5 every 1m0s", 3 * time.Minute},
		{bucket.Spec{Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorFirst, Capacity: 5000, Rate: minute, Queue: 500},
			"capacity 5, refill 5 every 1m0s, queue 0.5", 3 * time.Minute},
		{bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: minute}, "5 in any 1m0s (sliding window)", 144 * time.Second},
		{bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: minute}, "5 in any 1m0s (sliding log)", 144 * time.Second},
	} {
		l, _, err := tt.spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := l.String(); got != tt.text {
			t.Errorf("%+v: %q, want %q", tt.spec, got, tt.text)
		}
		if got := l.TimeFor(12 * bucket.Token); got != tt.time {
			t.Errorf("%v: TimeFor(12) = %v, want %v", l, got, tt.time)
		}
		if l.Algorithm() != tt.spec.Algorithm || l.Anchor() != tt.spec.Anchor || l.Queued() != (tt.spec.Queue > 0) {
			t.Errorf("%v: %v, anchor %d, queued %v; want those of %+v", l, l.Algorithm(), l.Anchor(), l.Queued(), tt.spec)
		}
		if l.TimeFor(0) != 0 || l.TimeFor(bucket.MaxTokens+1) != bucket.Never {
			t.Errorf("%v: TimeFor(0) = %v, TimeFor(more than there is) = %v", l, l.TimeFor(0), l.TimeFor(bucket.MaxTokens+1))
		}
	}
	if got, want := bucket.Algorithm(9).String(), "algorithm 9"; got != want {
		t.Errorf("an unknown algorithm is %q, want %q", got, want)
	}
}

// TestLimitFor_BeginsByTheKey: a key's intervals start at its FNV-1a hash. Other limits do not depend on keys.
func TestLimitFor_BeginsByTheKey(t *testing.T) {
	l, _, err := bucket.Spec{
		Algorithm: bucket.AlgorithmStepped, Anchor: bucket.AnchorKey, Capacity: 1000, Rate: bucket.Rate{Tokens: 1000, Per: time.Hour},
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "a", "user:42", "κλειδί", string(make([]byte, 300))} {
		hash := fnv.New64a()
		hash.Write([]byte(key))
		const hour = 3600e6
		offset := bucket.Instant(hash.Sum64() % hour)
		mine := l.ForKey(key)
		if got, want := mine.Start(), time.Duration(offset)*time.Microsecond; got != want {
			t.Errorf("key %q: starts at %v, want %v", key, got, want)
		}
		s, _ := mine.Take(bucket.State{}, 1e6*hour+offset, bucket.Token)
		if got := mine.Peek(s, 1e6*hour+offset+1, bucket.Token, 0).RetryAfter; got != time.Hour-time.Microsecond {
			t.Errorf("key %q: an hour begins %v after a microsecond past its hash", key, got)
		}
		if mine.ForKey("b").ForKey(key) != mine || !mine.EqualExceptKey(&l) || !l.EqualExceptKey(&mine) {
			t.Errorf("key %q: For does not replace the key before, or makes another limit", key)
		}
	}
	for _, kind := range kinds {
		if other := hundred(t, kind.spec); kind.spec.Anchor != bucket.AnchorKey && other.ForKey("x") != other {
			t.Errorf("%s: another limit for a key", kind.name)
		}
	}
}

// TestSame_ComparesAllButTheKey: limits with other numbers differ. Limits with other intervals differ, although
// their states look alike.
func TestSame_ComparesAllButTheKey(t *testing.T) {
	none := bucket.Tokens(0)
	for i, kind := range kinds {
		l := hundred(t, kind.spec)
		for j, other := range kinds {
			if m := hundred(t, other.spec); l.EqualExceptKey(&m) != (i == j) {
				t.Errorf("%s and %s: the same %v, want %v", kind.name, other.name, l.EqualExceptKey(&m), i == j)
			}
		}
		spec := kind.spec
		if spec.MaxReserved != nil || spec.Queue > 0 {
			continue
		}
		spec.MaxReserved = &none
		if m := hundred(t, spec); l.EqualExceptKey(&m) {
			t.Errorf("%s: the same as one that may owe nothing", kind.name)
		}
	}
}
