// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
)

// split returns the limits of all shards.
func split(t *testing.T, l bucket.Limit, n int) []bucket.Limit {
	t.Helper()
	parts := make([]bucket.Limit, n)
	for i := range parts {
		var err error
		if parts[i], err = l.Shard(i, n); err != nil {
			t.Fatalf("shard %d of %d of %v: %v", i, n, l, err)
		}
	}
	return parts
}

func TestShard_PartsAddUp(t *testing.T) {
	r := random(31)
	for range 3000 {
		l, n := randomLimit(r), 2+r.IntN(63)
		if _, err := l.Shard(0, n); err != nil {
			continue // see TestShard_Refused
		}
		var capacity, owed bucket.Tokens
		rate := new(big.Rat)
		for i, s := range split(t, l, n) {
			refill, p := s.Refill()
			capacity, owed = capacity+s.Capacity(), owed+s.MaxReserved()
			rate.Add(rate, big.NewRat(int64(refill), p))
			if units := new(big.Int).Mul(big.NewInt(int64(s.Capacity()+s.MaxReserved())), big.NewInt(p)); units.BitLen() > 53 {
				t.Fatalf("%v, max reserved %v: shard %d of %d counts %v units, more than 2^53", l, l.MaxReserved(), i, n, units)
			}
		}
		refill, p := l.Refill()
		if want := big.NewRat(int64(refill), p); capacity != l.Capacity() || rate.Cmp(want) != 0 || owed > l.MaxReserved() {
			t.Fatalf("%v over %d shards: capacity %v, rate %v, max reserved %v; want %v, %v, %v",
				l, n, capacity, rate, owed, l.Capacity(), want, l.MaxReserved())
		}
	}
}

func TestShard_RemaindersGoToTheFirst(t *testing.T) {
	most := 7 * bucket.Token / 2
	l, _, err := bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.PerSecond(10 * bucket.Token), MaxReserved: &most}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ capacity, owed bucket.Tokens }{{3334, 1167}, {3333, 1167}, {3333, 1166}} {
		s, err := l.Shard(i, 3)
		if err != nil || s.Capacity() != want.capacity || s.MaxReserved() != want.owed {
			t.Errorf("shard %d of 3: capacity %v, max reserved %v, error %v; want %v, %v",
				i, s.Capacity(), s.MaxReserved(), err, want.capacity, want.owed)
		}
		if n, p := s.Refill(); n != 1 || p != 300 {
			t.Errorf("shard %d of 3 of 10/s refills %d every %d µs, want 1 every 300", i, n, p)
		}
	}
}

func TestShard_Refused(t *testing.T) {
	second := bucket.PerSecond(bucket.Token)
	limit := func(s bucket.Spec) bucket.Limit {
		l, _, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	whole := limit(bucket.Spec{Capacity: 10 * bucket.Token, Rate: second})
	owed := bucket.Tokens(1)
	tests := []struct {
		name string
		l    bucket.Limit
		i, n int
	}{
		{"number too high", whole, 10, 10},
		{"negative number", whole, -1, 10},
		{"no shards", whole, 0, 0},
		{"less than a token each", whole, 0, 11},
		{"zero limit", bucket.Limit{}, 0, 2},
		{"queue", limit(bucket.Spec{Capacity: 10 * bucket.Token, Rate: second, Queue: 5 * bucket.Token}), 0, 2},
		{"stepped", limit(bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 10 * bucket.Token, Rate: second}), 0, 2},
		{"sliding window", limit(bucket.Spec{Algorithm: bucket.AlgorithmSlidingWindow, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Minute}}), 0, 2},
		{"sliding log", limit(bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Minute}}), 0, 2},
		{"capacity does not fit", limit(bucket.Spec{Capacity: (1<<53 - 1) / 1_000_003, Rate: bucket.Rate{Tokens: 1, Per: 1_000_003 * time.Microsecond}}), 0, 64},
		{"debt does not fit", limit(bucket.Spec{Capacity: 1<<53 - 3, Rate: bucket.Rate{Tokens: 1, Per: time.Microsecond}, MaxReserved: &owed}), 0, 2},
	}
	for _, tt := range tests {
		if s, err := tt.l.Shard(tt.i, tt.n); !errors.Is(err, bucket.ErrLimit) {
			t.Errorf("%s: shard %d of %d of %v = %v, error %v; want ErrLimit", tt.name, tt.i, tt.n, tt.l, s, err)
		}
	}
}

// A pool is a limit split over buckets, with their states.
type pool struct {
	whole  bucket.Limit
	limits []bucket.Limit
	states []bucket.State
}

// look returns the contents of the shards.
func (p *pool) look(now bucket.Instant) bucket.Shards {
	seen := make(bucket.Shards, len(p.limits))
	for i, l := range p.limits {
		seen[i] = l.Peek(p.states[i], now, 0, 0)
	}
	return seen
}

// take charges the shards as Spread decides, and returns the merged snapshot.
func (p *pool) take(t *testing.T, now bucket.Instant, cost bucket.Tokens, maxWait time.Duration) bucket.Snapshot {
	t.Helper()
	seen := p.look(now)
	if seen.Spread(cost, maxWait) {
		for i := range seen {
			if !seen[i].Allowed {
				continue
			}
			p.states[i], seen[i] = p.limits[i].Reserve(p.states[i], now, seen[i].Cost, maxWait)
			if !seen[i].Allowed {
				t.Fatalf("shard %d (%v) denied its part of %v within %v", i, p.limits[i], cost, maxWait)
			}
		}
	}
	return seen.Merge(p.whole, cost, maxWait)
}

func randomPool(t *testing.T, r *rand.Rand) *pool {
	for {
		l, n := randomLimit(r), 2+r.IntN(9)
		if _, err := l.Shard(0, n); err == nil {
			return &pool{l, split(t, l, n), make([]bucket.State, n)}
		}
	}
}

// TestShards_RetryAfterIsExact denies a cost, and tries again a microsecond before the wait has passed and
// exactly then.
func TestShards_RetryAfterIsExact(t *testing.T) {
	r := random(32)
	denials := 0
	for range 600 {
		p, now := randomPool(t, r), bucket.Instant(1e15)
		for range 20 {
			cost := bucket.Tokens(r.Int64N(int64(p.whole.Capacity()) + 2))
			var maxWait time.Duration
			switch r.IntN(6) {
			case 0:
				maxWait = time.Duration(upTo(r, 1<<30)) * time.Microsecond
			case 1:
				maxWait = bucket.Forced
			}
			got := p.take(t, now, cost, maxWait)
			if !got.Allowed && got.RetryAfter != bucket.Never {
				denials++
				at := now.Add(got.RetryAfter)
				if early := p.look(at - 1); got.RetryAfter > time.Microsecond && early.Spread(cost, maxWait) {
					t.Fatalf("%v over %d: %v within %v is admitted a microsecond before %v", p.whole, len(p.limits), cost, maxWait, got.RetryAfter)
				}
				if then := p.look(at); !then.Spread(cost, maxWait) {
					t.Fatalf("%v over %d: %v within %v is denied after %v", p.whole, len(p.limits), cost, maxWait, got.RetryAfter)
				}
			}
			now += bucket.Instant(upTo(r, int64(p.whole.TimeFor(p.whole.Capacity()).Microseconds())))
		}
	}
	if denials < 500 {
		t.Errorf("only %d denials: the run is too short to mean anything", denials)
	}
}

// TestShards_NeverMoreThanTheWhole charges one bucket with every cost that the shards admit: it admits them,
// too, and holds at least as much. The loss of the shards stays within (1 − 1/n) of the capacity.
func TestShards_NeverMoreThanTheWhole(t *testing.T) {
	r := random(33)
	for range 600 {
		p, now := randomPool(t, r), bucket.Instant(1e15)
		n := bucket.Tokens(len(p.limits))
		var whole bucket.State
		for range 40 {
			cost := bucket.Tokens(r.Int64N(int64(p.whole.Capacity())/2 + 1))
			got := p.take(t, now, cost, 0)
			after, want := p.whole.Take(whole, now, cost)
			switch {
			case got.Allowed && !want.Allowed:
				t.Fatalf("%v over %d: %v is admitted, and would not be by one bucket", p.whole, n, cost)
			case got.Allowed:
				whole = after
			default:
				want = p.whole.Peek(whole, now, 0, 0)
			}
			behind := want.Remaining() - got.Remaining()
			if most := p.whole.Capacity() - p.whole.Capacity()/n + n; behind < 0 || behind > most {
				t.Fatalf("%v over %d: the shards hold %v, one bucket %v; want at most %v less", p.whole, n, got.Remaining(), want.Remaining(), most)
			}
			now += bucket.Instant(upTo(r, int64(p.whole.TimeFor(p.whole.Capacity()).Microseconds())))
		}
	}
}

func tenShards(t *testing.T) *pool {
	t.Helper()
	l, err := bucket.NewLimit(100*bucket.Token, bucket.PerSecond(10*bucket.Token))
	if err != nil {
		t.Fatal(err)
	}
	return &pool{l, split(t, l, 10), make([]bucket.State, 10)}
}

func TestShards_Merge(t *testing.T) {
	p, now := tenShards(t), bucket.Instant(1e15)
	if got := p.look(now).Merge(p.whole, 0, 0); got.Remaining() != 100*bucket.Token || got.FullAfter() != 0 {
		t.Errorf("new: remaining %v, full after %v; want 100, 0s", got.Remaining(), got.FullAfter())
	}
	got := p.take(t, now, 95*bucket.Token, 0) // no shard holds a tenth of it
	if !got.Allowed || got.Remaining() != 5*bucket.Token || got.FullAfter() != 9500*time.Millisecond {
		t.Errorf("take 95: %v, remaining %v, full after %v; want admitted, 5, 9.5s", got.Allowed, got.Remaining(), got.FullAfter())
	}
	got = p.take(t, now, 6*bucket.Token, 0)
	if got.Allowed || got.RetryAfter != 100*time.Millisecond || got.Remaining() != 5*bucket.Token {
		t.Errorf("take 6 of 5: %v, retry after %v, remaining %v; want denied, 100ms, 5", got.Allowed, got.RetryAfter, got.Remaining())
	}
	if got = p.take(t, now, 101*bucket.Token, 0); got.Allowed || got.RetryAfter != bucket.Never {
		t.Errorf("take 101: %v, retry after %v; want denied, never", got.Allowed, got.RetryAfter)
	}
	if got = p.take(t, now, -1, 0); got.Allowed || got.RetryAfter != bucket.Never {
		t.Errorf("take -1: %v, retry after %v; want denied, never", got.Allowed, got.RetryAfter)
	}
}

func TestShards_MergeOfSome(t *testing.T) {
	p, now := tenShards(t), bucket.Instant(1e15)
	p.take(t, now, 50*bucket.Token, 0)
	if got := p.look(now)[3:5].Merge(p.whole, 0, 0); got.Remaining() != 50*bucket.Token {
		t.Errorf("two of ten half full shards stand for %v tokens, want 50", got.Remaining())
	}
}

func TestShards_OwesAsShortAsItCan(t *testing.T) {
	p, now := tenShards(t), bucket.Instant(1e15)
	p.take(t, now, 100*bucket.Token, 0)
	if got := p.take(t, now, 20*bucket.Token, time.Second); got.Allowed || got.RetryAfter != time.Second {
		t.Errorf("20 owed within 1s at 10/s: %v, retry after %v; want denied, 1s", got.Allowed, got.RetryAfter)
	}
	got := p.take(t, now, 20*bucket.Token, 2*time.Second)
	if !got.Allowed || got.Wait() != 2*time.Second || got.Remaining() != 0 {
		t.Errorf("20 owed within 2s: %v, wait %v, remaining %v; want admitted, 2s, 0", got.Allowed, got.Wait(), got.Remaining())
	}
	got = p.take(t, now, 50*bucket.Token, bucket.Forced)
	if !got.Allowed || got.Wait() != 7*time.Second || got.FullAfter() != 17*time.Second {
		t.Errorf("50 forced: %v, wait %v, full after %v; want admitted, 7s, 17s", got.Allowed, got.Wait(), got.FullAfter())
	}
	if got = p.take(t, now, 0, 0); got.Allowed || got.RetryAfter != 7*time.Second {
		t.Errorf("0 of a bucket that owes: %v, retry after %v; want denied, 7s", got.Allowed, got.RetryAfter)
	}
}

// TestShards_Preview compares the predicted wait of a cost with the actual one.
func TestShards_Preview(t *testing.T) {
	r := random(34)
	waited := 0
	for range 400 {
		p, now := randomPool(t, r), bucket.Instant(1e15)
		for range 20 {
			cost := bucket.Tokens(r.Int64N(int64(p.whole.Capacity()) + 1))
			maxWait := time.Duration(upTo(r, 1<<40)) * time.Microsecond
			seen := p.look(now)
			seen.Spread(cost, maxWait)
			want, first := seen.Preview(p.whole, cost, maxWait), p.look(now).Merge(p.whole, 0, 0)
			got := p.take(t, now, cost, maxWait)
			if got.Allowed != want.Allowed || got.RetryAfter != want.RetryAfter || got.Allowed && got.Wait() != want.RefillAfter(cost) {
				t.Fatalf("%v over %d: %v within %v: %v, retry after %v, wait %v; foreseen %v, %v, %v", p.whole, len(p.limits),
					cost, maxWait, got.Allowed, got.RetryAfter, got.Wait(), want.Allowed, want.RetryAfter, want.RefillAfter(cost))
			}
			if got.Wait() > 0 {
				waited++
			} else if want.Remaining() != first.Remaining() {
				t.Fatalf("%v over %d: the preview shows %v remaining, there are %v", p.whole, len(p.limits), want.Remaining(), first.Remaining())
			}
			now += bucket.Instant(upTo(r, int64(p.whole.TimeFor(p.whole.Capacity()).Microseconds())))
		}
	}
	if waited < 100 {
		t.Errorf("only %d had to wait: the run is too short to mean anything", waited)
	}
}

func TestShards_FullestPaysAlone(t *testing.T) {
	p, now := tenShards(t), bucket.Instant(1e15)
	for i := range p.states {
		if i != 6 {
			p.states[i], _ = p.limits[i].Take(p.states[i], now, bucket.Token)
		}
	}
	seen := p.look(now)
	if !seen.Spread(10*bucket.Token, 0) {
		t.Fatal("10 of 91 cannot be spread")
	}
	for i, s := range seen {
		if s.Allowed != (i == 6) || s.Allowed && s.Cost != 10*bucket.Token {
			t.Errorf("shard %d pays %v (%v), want the seventh to pay all", i, s.Cost, s.Allowed)
		}
	}
}

func TestShards_SpreadRefund(t *testing.T) {
	p, now := tenShards(t), bucket.Instant(1e15)
	for i := range 3 { // misses 2, 4 and 6
		p.states[i], _ = p.limits[i].Take(p.states[i], now, 2*bucket.Tokens(i+1)*bucket.Token)
	}
	tests := []struct {
		amount, given bucket.Tokens
		parts         [3]bucket.Tokens
	}{
		{0, 0, [3]bucket.Tokens{}},
		{-5, 0, [3]bucket.Tokens{}},
		{1000, 1000, [3]bucket.Tokens{0, 0, 1000}},
		{3001, 3001, [3]bucket.Tokens{0, 500, 2501}},
		{9000, 9000, [3]bucket.Tokens{1000, 3000, 5000}},
		{50_000, 12_000, [3]bucket.Tokens{2000, 4000, 6000}},
	}
	for _, tt := range tests {
		seen := p.look(now)
		given := seen.SpreadRefund(tt.amount)
		if got := [3]bucket.Tokens{seen[0].Cost, seen[1].Cost, seen[2].Cost}; given != tt.given || got != tt.parts {
			t.Errorf("refund %v: %v as %v; want %v as %v", tt.amount, given, got, tt.given, tt.parts)
		}
	}
}

func TestShards_None(t *testing.T) {
	var none bucket.Shards
	l := tenShards(t).whole
	if none.Spread(0, 0) || none.SpreadRefund(5) != 0 {
		t.Error("no shards pay or take something")
	}
	if got := none.Merge(l, 1, 0); got.Allowed || got.RetryAfter != bucket.Never {
		t.Errorf("no shards: %v, retry after %v; want denied, never", got.Allowed, got.RetryAfter)
	}
	zero := bucket.Shards{{}}
	if zero.Spread(1, bucket.Forced) || zero.Merge(l, 1, 0).Allowed {
		t.Error("a zero snapshot pays")
	}
}
