// SPDX-License-Identifier: Apache-2.0

package shards_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A hotStore is a sharded store over a naive one with checked calls.
type hotStore struct {
	*testing.T
	mete.Store
	clock *storetest.Clock
	asked *strict
}

func newHotStore(t *testing.T) *hotStore {
	clock := storetest.NewClock()
	asked := &strict{Store: storetest.NewModel(clock.Now), t: t}
	r := rand.New(testseed.PCG(20260101, 5))
	return &hotStore{t, shards.New(asked, r.IntN), clock, asked}
}

// strict fails the test if a call breaks the contract of stores. It counts calls, and lets others run in between.
type strict struct {
	mete.Store
	t      *testing.T
	calls  []string
	before func(n int, mode mete.Mode) error // of the n'th call
}

func (s *strict) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.t.Helper()
	keys := make([]string, len(charges))
	for i, c := range charges {
		keys[i] = c.Key
		if c.Shards > 1 || c.Cost < 0 || len(c.Key) > store.MaxKeyBytes {
			s.t.Errorf("the store was asked for %+v", c)
		}
	}
	if len(keys) == 0 || len(keys) > store.MaxCharges || !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
		s.t.Errorf("the store was asked for %d keys: %q", len(keys), keys)
	}
	s.calls = append(s.calls, fmt.Sprintf("%v %s", mode.DryRun, strings.Join(keys, " ")))
	if s.before != nil {
		if err := s.before(len(s.calls), mode); err != nil {
			return dst, false, err
		}
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

func (s *hotStore) take(mode mete.Mode, charges ...store.Charge) ([]bucket.Snapshot, bool) {
	s.Helper()
	snaps, allowed, err := s.Take(s.Context(), nil, charges, mode)
	if err != nil {
		s.Fatalf("take %+v: %v", charges, err)
	}
	if len(snaps) != len(charges) {
		s.Fatalf("take of %d charges returned %d snapshots", len(charges), len(snaps))
	}
	return snaps, allowed
}

// holds asserts the content of the whole bucket of a charge.
func (s *hotStore) holds(c store.Charge, want bucket.Tokens) {
	s.Helper()
	c.Cost = 0
	if snaps, _ := s.take(mete.Mode{DryRun: true}, c); snaps[0].Remaining() != want {
		s.Errorf("%q holds %v, want %v", c.Key, snaps[0].Remaining(), want)
	}
}

// left returns the remaining amount of each shard of a charge.
func (s *hotStore) left(c store.Charge) (left []bucket.Tokens) {
	s.Helper()
	for i, key := range shards.Keys(nil, c.Key, c.Shards) {
		limit, err := c.Limit.Shard(i, c.Shards)
		if err != nil {
			s.Fatal(err)
		}
		snaps, _, err := s.asked.Store.Take(s.Context(), nil, []store.Charge{{Key: key, Limit: limit}}, mete.Mode{DryRun: true})
		if err != nil {
			s.Fatal(err)
		}
		left = append(left, snaps[0].Remaining())
	}
	return left
}

func tokens(t *testing.T, capacity int64, rate bucket.Rate) bucket.Limit {
	t.Helper()
	l, err := bucket.NewLimit(bucket.Tokens(capacity)*bucket.Token, rate)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var (
	tenPerSecond = bucket.PerSecond(10 * bucket.Token)
	oneAnHour    = bucket.Rate{Tokens: bucket.Token, Per: time.Hour}
)

// hot returns a charge of one token to 100, refilled at 10/s, over ten shards.
func hot(t *testing.T) store.Charge {
	return store.Charge{Key: "hot", Limit: tokens(t, 100, tenPerSecond), Cost: bucket.Token, Shards: 10}
}

func TestSharded_FirstRefusal(t *testing.T) {
	for _, n := range []int{2, 3, 10, 50} {
		s, c := newHotStore(t), hot(t)
		c.Shards = n
		admitted := 0
		for {
			if _, allowed := s.take(mete.Mode{}, c); !allowed {
				break
			}
			admitted++
		}
		if admitted != 100 {
			t.Errorf("%d shards of 100 tokens: the first refusal comes after %d, want 100", n, admitted)
		}
	}
}

func TestSharded_CommonTakeAsksTwice(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	s.take(mete.Mode{}, c)
	if len(s.asked.calls) != 2 {
		t.Fatalf("a take made %d calls, want 2: %q", len(s.asked.calls), s.asked.calls)
	}
	look, take := strings.Fields(s.asked.calls[0]), strings.Fields(s.asked.calls[1])
	if len(look) != 3 || look[0] != "true" || len(take) != 2 || !slices.Contains(look[1:], take[1]) {
		t.Errorf("calls %q, want a look at two shards and a take from one of them", s.asked.calls)
	}
}

func TestSharded_TheFullerPays(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	// With other random numbers, one sequence in fifty leaves more in a shard at the end.
	s.Store = shards.New(s.asked, rand.New(rand.NewPCG(20260101, 5)).IntN)
	one := store.Charge{Key: "hot|#3", Limit: tokens(t, 10, bucket.PerSecond(bucket.Token)), Cost: 5 * bucket.Token}
	s.asked.Store.Take(t.Context(), nil, []store.Charge{one}, mete.Mode{})
	keys := shards.Keys(nil, c.Key, c.Shards)
	for range 90 {
		before := s.left(c)
		s.asked.calls = nil
		s.take(mete.Mode{}, c)
		looks := strings.Fields(s.asked.calls[0])[1:]
		after := s.left(c)
		for i := range keys {
			if after[i] == before[i] {
				continue
			}
			for _, key := range looks {
				if left := before[slices.Index(keys, key)]; left > before[i] {
					t.Errorf("shard %q has %v and pays, and %q has %v", keys[i], before[i], key, left)
				}
			}
		}
	}
	// All but the third started with twice as much: choosing between two shards evens that out.
	for i, left := range s.left(c) {
		if left > 2*bucket.Token {
			t.Errorf("shard %q has %v left of 5 in ten, want at most 2", keys[i], left)
		}
	}
}

func TestSharded_CostsAboveAShard(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 97*bucket.Token + 1
	if snaps, allowed := s.take(mete.Mode{}, c); !allowed || snaps[0].Remaining() != 3*bucket.Token-1 {
		t.Errorf("97.001 of 100: %v, remaining %v; want admitted, 2.999", allowed, snaps[0].Remaining())
	}
	c.Cost = 4 * bucket.Token
	snaps, allowed := s.take(mete.Mode{}, c)
	// All shards refill a thousandth every millisecond.
	if want := 101 * time.Millisecond; allowed || snaps[0].RetryAfter != want || snaps[0].Cost != c.Cost {
		t.Fatalf("4 of 2.999: %v, retry after %v of cost %v; want denied, %v, 4", allowed, snaps[0].RetryAfter, snaps[0].Cost, want)
	}
	s.clock.Advance(snaps[0].RetryAfter.Microseconds() - 1)
	if snaps, allowed := s.take(mete.Mode{}, c); allowed || snaps[0].RetryAfter != time.Microsecond {
		t.Errorf("1 µs early: %v, retry after %v; want denied, 1µs", allowed, snaps[0].RetryAfter)
	}
	s.clock.Advance(1)
	if _, allowed := s.take(mete.Mode{}, c); !allowed {
		t.Error("denied at the promised instant")
	}
	c.Cost = 100*bucket.Token + 1
	if snaps, allowed := s.take(mete.Mode{}, c); allowed || snaps[0].RetryAfter != bucket.Never {
		t.Errorf("100.001 of 100: %v, retry after %v; want denied, never", allowed, snaps[0].RetryAfter)
	}
}

func TestSharded_AllOrNone(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	user := store.Charge{Key: "a:user", Limit: tokens(t, 3, oneAnHour), Cost: bucket.Token}
	other := store.Charge{Key: "z:hot", Limit: tokens(t, 20, oneAnHour), Cost: 8 * bucket.Token, Shards: 5}
	for i := range 5 {
		snaps, allowed := s.take(mete.Mode{}, user, c, other)
		if i < 2 != allowed {
			t.Fatalf("take %d: %v, want %v", i+1, allowed, i < 2)
		}
		// The shards need 4 more, and each that is not full refills a fifth of a token per hour.
		full := 0
		for _, left := range s.left(other) {
			if left == 4*bucket.Token {
				full++
			}
		}
		want := 4 * time.Hour * 5 / time.Duration(5-full)
		if i >= 2 && (!snaps[0].Allowed || !snaps[1].Allowed || snaps[2].Allowed || snaps[2].RetryAfter != want) {
			t.Errorf("take %d: %v %v %v, retry after %v; want only the last to deny, for %v",
				i+1, snaps[0].Allowed, snaps[1].Allowed, snaps[2].Allowed, snaps[2].RetryAfter, want)
		}
	}
	other.Cost = bucket.Token
	s.take(mete.Mode{}, user, c, other)
	if snaps, allowed := s.take(mete.Mode{}, user, c, other); allowed || snaps[0].Allowed || !snaps[1].Allowed || !snaps[2].Allowed {
		t.Errorf("user is empty: %v, %v %v %v; want only the first to deny", allowed, snaps[0].Allowed, snaps[1].Allowed, snaps[2].Allowed)
	}
	s.holds(user, 0)
	s.holds(c, 97*bucket.Token)
	s.holds(other, 3*bucket.Token)
}

func TestSharded_DryRunChangesNothing(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 60 * bucket.Token
	for range 3 {
		if snaps, allowed := s.take(mete.Mode{DryRun: true}, c); !allowed || snaps[0].Remaining() != 100*bucket.Token {
			t.Fatalf("dry run of 60: %v, remaining %v; want admitted, 100", allowed, snaps[0].Remaining())
		}
	}
	s.take(mete.Mode{}, c)
	if snaps, allowed := s.take(mete.Mode{DryRun: true}, c); allowed || snaps[0].RetryAfter != 2*time.Second {
		t.Errorf("dry run of 60 of 40: %v, retry after %v; want denied, 2s", allowed, snaps[0].RetryAfter)
	}
}

func TestSharded_Reservations(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 110 * bucket.Token
	if snaps, allowed := s.take(mete.Mode{MaxWait: 900 * time.Millisecond}, c); allowed || snaps[0].RetryAfter != bucket.Never {
		t.Errorf("110 within 0.9s: %v, retry after %v; want denied, never", allowed, snaps[0].RetryAfter)
	}
	if snaps, allowed := s.take(mete.Mode{MaxWait: 5 * time.Second, DryRun: true}, c); !allowed || snaps[0].RefillAfter(c.Cost) != time.Second || snaps[0].Wait() != 0 {
		t.Errorf("dry run of 110 within 5s: %v, wait %v; want admitted, 1s", allowed, snaps[0].RefillAfter(c.Cost))
	}
	if snaps, allowed := s.take(mete.Mode{MaxWait: 5 * time.Second}, c); !allowed || snaps[0].Wait() != time.Second {
		t.Errorf("110 within 5s: %v, wait %v; want admitted, 1s", allowed, snaps[0].Wait())
	}
	c.Cost = 40 * bucket.Token
	if snaps, allowed := s.take(mete.Mode{MaxWait: bucket.Forced}, c); !allowed || snaps[0].Wait() != 5*time.Second {
		t.Errorf("40 forced: %v, wait %v; want admitted, 5s", allowed, snaps[0].Wait())
	}
	if err := s.Refund(t.Context(), storetest.Refunds(c), ""); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(2e6)
	s.holds(c, 10*bucket.Token)
}

func TestSharded_WaitsForNoLoanAnotherHolds(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 10 * bucket.Token
	s.asked.before = func(n int, mode mete.Mode) error {
		if n == 2 { // between look and take, others empty every shard but the last
			s.asked.before = nil
			for i, key := range shards.Keys(nil, c.Key, c.Shards)[:9] {
				l, _ := c.Limit.Shard(i, c.Shards)
				s.asked.Store.Take(t.Context(), nil, []store.Charge{{Key: key, Limit: l, Cost: 10 * bucket.Token}}, mete.Mode{})
			}
		}
		return nil
	}
	if snaps, allowed := s.take(mete.Mode{MaxWait: time.Minute}, c); !allowed || snaps[0].Wait() != 0 {
		t.Errorf("10 of a last full shard: %v, wait %v; want admitted, 0s", allowed, snaps[0].Wait())
	}
}

func TestSharded_UpTo(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	small := store.Charge{Key: "small", Limit: tokens(t, 30, oneAnHour), Cost: 80 * bucket.Token}
	c.Cost = 80 * bucket.Token
	snaps, allowed := s.take(mete.Mode{UpTo: true}, c)
	if !allowed || snaps[0].Cost != 80*bucket.Token {
		t.Errorf("up to 80 of 100: %v, %v; want admitted, 80", allowed, snaps[0].Cost)
	}
	snaps, allowed = s.take(mete.Mode{UpTo: true}, c, small)
	if !allowed || snaps[0].Cost != 20*bucket.Token || snaps[1].Cost != 20*bucket.Token {
		t.Errorf("up to 80 of 20 and 30: %v, %v and %v; want admitted, 20 both", allowed, snaps[0].Cost, snaps[1].Cost)
	}
	s.holds(small, 10*bucket.Token)
	snaps, allowed = s.take(mete.Mode{UpTo: true}, c, small)
	if allowed || snaps[0].RetryAfter != 100*time.Millisecond || snaps[0].Cost != bucket.Token || !snaps[1].Allowed {
		t.Errorf("up to 80 of none and 10: %v, retry after %v of %v, other %v; want denied, 100ms of 1, allowed",
			allowed, snaps[0].RetryAfter, snaps[0].Cost, snaps[1].Allowed)
	}
}

func TestSharded_RefundGoesWhereItIsMissing(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 73 * bucket.Token
	s.take(mete.Mode{}, c)
	for _, step := range []struct{ back, want bucket.Tokens }{{20_001, 47_001}, {40_000, 87_001}, {999_000, 100_000}, {5000, 100_000}} {
		c.Cost = step.back
		if err := s.Refund(t.Context(), storetest.Refunds(c), ""); err != nil {
			t.Fatal(err)
		}
		s.holds(c, step.want)
	}
}

func TestSharded_Reset(t *testing.T) {
	s, c := newHotStore(t), hot(t)
	c.Cost = 100 * bucket.Token
	s.take(mete.Mode{}, c)
	if err := s.Reset(t.Context(), shards.Keys(nil, c.Key, c.Shards)); err != nil {
		t.Fatal(err)
	}
	s.holds(c, 100*bucket.Token)
}

func TestSharded_OthersPassThrough(t *testing.T) {
	s, l := newHotStore(t), tokens(t, 3, oneAnHour)
	for _, shards := range []int{0, 1} {
		s.asked.calls = nil
		s.take(mete.Mode{ID: "x"}, store.Charge{Key: "k", Limit: l, Cost: bucket.Token, Shards: shards})
		if len(s.asked.calls) != 1 || s.asked.calls[0] != "false k" {
			t.Errorf("shards %d: calls %q, want one take of k", shards, s.asked.calls)
		}
	}
}

func TestSharded_Refused(t *testing.T) {
	s := newHotStore(t)
	many := []store.Charge{hot(t)}
	many[0].Shards, many[0].Limit = store.MaxCharges, tokens(t, 1000, tenPerSecond)
	long, thin := hot(t), hot(t)
	long.Key = strings.Repeat("k", store.MaxKeyBytes-3)
	thin.Limit, thin.Shards = tokens(t, 3, tenPerSecond), 4
	for name, charges := range map[string][]store.Charge{"too many": many, "long key": {long}, "less than a token each": {thin}} {
		_, allowed, err := s.Take(t.Context(), nil, charges, mete.Mode{})
		var failed *mete.StoreError
		if allowed || !errors.As(err, &failed) || mete.Spent(err) != mete.NotSpent {
			t.Errorf("%s: take: %v, error %v; want a StoreError that spent nothing", name, allowed, err)
		}
		if err := s.Refund(t.Context(), storetest.Refunds(charges...), ""); err == nil {
			t.Errorf("%s: refund: no error", name)
		}
	}
	if len(s.asked.calls) != 0 {
		t.Errorf("the store was asked all the same: %q", s.asked.calls)
	}
}

func TestSharded_StoreFails(t *testing.T) {
	broken := errors.New("broken")
	for call, want := range map[int]store.Spending{1: mete.NotSpent, 2: mete.MaybeSpent} {
		s := newHotStore(t)
		s.asked.before = func(n int, _ mete.Mode) error {
			if n == call {
				return broken
			}
			return nil
		}
		_, allowed, err := s.Take(t.Context(), nil, []store.Charge{hot(t)}, mete.Mode{})
		if allowed || !errors.Is(err, broken) || mete.Spent(err) != want {
			t.Errorf("call %d fails: %v, error %v, spent %v; want %v", call, allowed, err, mete.Spent(err), want)
		}
	}
}

func TestShardKeys_NoneTwice(t *testing.T) {
	seen := map[string]string{}
	for _, bucketKey := range []string{"a", "a1", "a|#1", "a|#", "a#1", "a:k=v", "a:k=v|#1", ""} {
		for _, n := range []int{2, 12} {
			for i, key := range shards.Keys(nil, bucketKey, n) {
				name := fmt.Sprintf("%q %d", bucketKey, i)
				if other, ok := seen[key]; ok && other != name {
					t.Errorf("%q is the key of shard %s and of %s", key, other, name)
				}
				if seen[key] = name; !shards.IsKey(key) {
					t.Errorf("%q is not known for the key of a shard", key)
				}
			}
		}
	}
	for _, key := range []string{"", "a", "a1", "a|", "a|#", "a#1", "a:k=1|j=#2", "a|#x1"} {
		if shards.IsKey(key) {
			t.Errorf("%q is taken for the key of a shard", key)
		}
	}
}
