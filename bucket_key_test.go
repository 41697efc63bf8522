// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// everyKind has a limit of every kind for one user.
const everyKind = `{"rules": [
	{"name": "token", "group": "1", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 3, "burst": 10}},
	{"name": "leaky", "group": "2", "limit_keys": ["header:x-user"], "algorithm": "leaky_bucket", "algorithm_config": {"rps": 3, "queue": 9}},
	{"name": "fixed", "group": "3", "limit_keys": ["header:x-user"], "algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "1m"}},
	{"name": "sliding", "group": "4", "limit_keys": ["header:x-user"], "algorithm": "sliding_window", "algorithm_config": {"tokens": 10, "window": "1m"}},
	{"name": "log", "group": "5", "limit_keys": ["header:x-user"], "algorithm": "sliding_log", "algorithm_config": {"tokens": 10, "window": "1m"}},
	{"name": "split", "group": "6", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 3, "burst": 10, "shards": 4}},
	{"name": "shadowed", "group": "7", "mode": "shadow", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 3, "burst": 10}},
	{"name": "slotted", "group": "8", "limit_keys": ["header:x-user"], "slot_by": "header:x-user", "algorithm_config": {"rps": 3, "burst": 10}}
], "overrides": [
	{"id": "more", "action": "limit", "key": "token:x-user=vip", "algorithm_config": {"rps": 3, "burst": 20}, "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"},
	{"id": "gone", "action": "block", "key": "log:x-user=bad", "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z"}]}`

// limitNames are the limits of one user's buckets.
var limitNames = []string{"token", "leaky", "fixed", "sliding", "log", "split", "shadowed", "{alice}slotted"}

func ofAlice(limit string) string { return limit + ":x-user=alice" }

func (r rig) bucket(key string) mete.BucketState {
	r.Helper()
	b, err := r.Bucket(r.Context(), key)
	if err != nil {
		r.Fatalf("%s: %v", key, err)
	}
	return b
}

// The bucket returned for a key has the state that requests see, and its wait is exact.
func TestBucket_IsWhatRequestsSee(t *testing.T) {
	r := newRig(t, everyKind)
	attrs := mete.Attrs{"header:x-user": "alice"}
	for _, spent := range []bucket.Tokens{0, 2500, 7500} {
		if spent > 0 {
			if d, err := r.Take(r.Context(), mete.Request{Attributes: attrs, Cost: mete.TokensOf(spent)}); err != nil || !d.Allowed {
				t.Fatalf("take %v: %+v, %v", spent, d, err)
			}
		}
		r.clock.Advance(123_457)
		e, err := r.Explain(r.Context(), mete.Request{Attributes: attrs})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, rule := range e.Rules {
			for _, a := range rule.Accounts {
				b := r.bucket(a.Key)
				if b.Rule != a.Rule || b.Limit != a.Limit || a.Asked && (b.Room() != a.Before.Room() || b.RetryAfter != a.RetryAfter) || b.Key != a.Key || b.Cost != a.Cost {
					t.Errorf("%s: %+v of %q, want %+v", a.Key, b.Snapshot, b.Limit.Name, a.Before)
				}
				if b.Shadow != (rule.Rule.Name == "shadowed") || b.Block != nil || b.Allow != nil {
					t.Errorf("%s: in shadow %t, blocked by %v, allowed by %v", a.Key, b.Shadow, b.Block, b.Allow)
				}
				seen++
			}
		}
		if seen != len(limitNames) {
			t.Fatalf("%d buckets, want %d", seen, len(limitNames))
		}
	}
	for _, limit := range limitNames {
		key := ofAlice(limit)
		wait := r.bucket(key).RetryAfter
		if wait <= 0 || wait == bucket.Never {
			t.Errorf("%s: a wait of %v, want one", key, wait)
			continue
		}
		begin := r.clock.Now()
		r.clock.Advance(wait.Microseconds() - 1)
		before := r.bucket(key)
		r.clock.Advance(1)
		after := r.bucket(key)
		if before.Allowed || !after.Allowed {
			t.Errorf("%s: %t a microsecond before the wait of %v is over, and then %t", key, before.Allowed, wait, after.Allowed)
		}
		r.clock.Set(begin)
	}
}

func TestBucket_Overrides(t *testing.T) {
	r := newRig(t, everyKind)
	if b := r.bucket("token:x-user=vip"); b.Limit.Override == nil || b.Limit.Override.ID != "more" || b.Remaining() != 20*bucket.Token {
		t.Errorf("with another limit: %v of %+v", b.Remaining(), b.Limit)
	}
	if b := r.bucket("log:x-user=bad"); b.Block == nil || b.Block.ID != "gone" {
		t.Errorf("blocked: %+v", b)
	}
	if b := r.bucket("slotted:x-user=alice"); b.Key != "{alice}slotted:x-user=alice" {
		t.Errorf("without its tag: %q", b.Key)
	}
}

// A reset adds the missing tokens, and taking them restores the bucket.
func TestResetBucket_IsUndone(t *testing.T) {
	for _, limit := range limitNames {
		t.Run(limit, func(t *testing.T) {
			r := newRig(t, everyKind)
			key, attrs := ofAlice(limit), mete.Attrs{"header:x-user": "alice"}
			if d, err := r.Take(r.Context(), mete.Request{Attributes: attrs, Cost: 7.3}); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			r.clock.Advance(1_000_001)
			was := r.bucket(key)
			before, err := r.ResetBucket(t.Context(), key)
			if err != nil || before.Room() != was.Room() || before.Missing() == 0 {
				t.Fatalf("reset of %v: %v missing of %v, %v", was.Room(), before.Missing(), before.Room(), err)
			}
			if b := r.bucket(key); b.Missing() != 0 {
				t.Errorf("%v is missing after the reset", b.Missing())
			}
			after, taken, err := r.TakeBucket(t.Context(), key, mete.TokensOf(before.Missing()))
			if err != nil || taken != before.Missing() || after.Cost != was.Cost {
				t.Errorf("took %v of %v, %v; a request costs %v, want %v", taken, before.Missing(), err, after.Cost, was.Cost)
			}
			now := r.bucket(key)
			if limit == "split" && now.Room() >= was.Room() && now.Room() <= was.Room()+4 || now.Room() == was.Room() {
				return // each shard rounds down
			}
			t.Errorf("%v left after the undo, want %v", now.Room(), was.Room())
		})
	}
}

// TakeBucket takes all tokens, to a thousandth, without debt.
func TestTakeBucket_TakesWhatIsThere(t *testing.T) {
	for _, limit := range limitNames {
		t.Run(limit, func(t *testing.T) {
			r := newRig(t, everyKind)
			key, attrs := ofAlice(limit), mete.Attrs{"header:x-user": "alice"}
			if d, err := r.Take(r.Context(), mete.Request{Attributes: attrs, Cost: 4.321}); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			before := r.bucket(key)
			there := before.Room()
			after, taken, err := r.TakeBucket(t.Context(), key, mete.TokensOf(bucket.MaxTokens))
			if err != nil || taken > there || taken < there-4*8 || limit != "split" && taken != there {
				t.Errorf("took %v of %v, %v", taken, there, err)
			}
			if left := r.bucket(key); left.Allowed || after.Allowed || left.RetryAfter != after.RetryAfter && limit != "log" && limit != "split" {
				t.Errorf("%v left, and a wait of %v; said was %v", left.Room(), left.RetryAfter, after.RetryAfter)
			}
			if limit != "leaky" && r.bucket(key).Missing() > r.bucket(key).Snapshot.Limit.Capacity() {
				t.Error("it owes something")
			}
			if limit == "split" {
				return // the last thousandths are in several shards
			}
			if _, taken, err := r.TakeBucket(t.Context(), key, 1); err != nil || taken != 0 {
				t.Errorf("took %v of nothing, %v", taken, err)
			}
		})
	}
}

func TestTakeBucket_Races(t *testing.T) {
	r := newRig(t, `{"name": "all", "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 1000}}`)
	var sum atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_, taken, err := r.TakeBucket(t.Context(), "all:", 3.7)
				if err != nil {
					t.Error(err)
				}
				sum.Add(int64(taken))
				if d, err := r.Take(t.Context(), mete.Request{}); err != nil {
					t.Error(err)
				} else if d.Allowed {
					sum.Add(int64(d.Taken))
				}
			}
		})
	}
	wg.Wait()
	if got := bucket.Tokens(sum.Load()); got != 1000*bucket.Token {
		t.Errorf("%v were taken, want all of 1000", got)
	}
}

func TestBucket_Errors(t *testing.T) {
	r := newRig(t, everyKind)
	calls := map[string]func(ctx context.Context, l *mete.Limiter, key string) error{
		"bucket": func(ctx context.Context, l *mete.Limiter, key string) error { _, err := l.Bucket(ctx, key); return err },
		"reset": func(ctx context.Context, l *mete.Limiter, key string) error {
			_, err := l.ResetBucket(ctx, key)
			return err
		},
		"take": func(ctx context.Context, l *mete.Limiter, key string) error {
			_, _, err := l.TakeBucket(ctx, key, 0.001)
			return err
		},
	}
	down := &mete.StoreError{Op: "take", Store: "test", Spent: mete.NotSpent, Err: store.ErrUnavailable}
	broken, err := mete.New(brokenStore{down}, load(t, everyKind), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := mete.New(brokenStore{down}, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls {
		var unknown *policy.KeyError
		if err := call(t.Context(), r.Limiter, "tokn:x-user=alice"); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `did you mean "token"?`) {
			t.Errorf("%s of an unknown key: %v", name, err)
		}
		if err := call(t.Context(), bare, ofAlice("token")); !errors.As(err, &unknown) {
			t.Errorf("%s without a policy: %v", name, err)
		}
		if err := call(ended, r.Limiter, ofAlice("token")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
		if err := call(t.Context(), broken, ofAlice("token")); !errors.Is(err, store.ErrUnavailable) || mete.Spent(err) != mete.NotSpent {
			t.Errorf("%s without a store: %v", name, err)
		}
	}
	for _, tokens := range []bucket.Tokens{0, -1, bucket.MaxTokens + 1} {
		if _, _, err := r.TakeBucket(t.Context(), ofAlice("token"), mete.TokensOf(tokens)); !errors.Is(err, mete.ErrCost) {
			t.Errorf("take %v: %v", tokens, err)
		}
	}
}

// The store call has the rule's deadline, and local costs are charged first. A reset drops local costs.
func TestBucket_LocalBuckets(t *testing.T) {
	c := start(t, 1, `{"name": "all", "limit_keys": [], "on_store_error": "local", "deadline": "70ms", "algorithm_config": {"rate": "1/1h", "burst": 10}}`)
	n := c.nodes[0]
	n.line.hook = func(mode mete.Mode) {
		if mode.Within <= 0 || mode.Within > 70*time.Millisecond {
			t.Errorf("the store may take %v, want up to the rule's 70ms", mode.Within)
		}
	}
	c.cut(down)
	n.take(3)
	if _, err := n.Bucket(t.Context(), "all:"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without the store: %v", err)
	}
	c.cut(up)
	if b, err := n.Bucket(t.Context(), "all:"); err != nil || b.Remaining() != 7*bucket.Token {
		t.Errorf("%v left, %v; want 7 of 10", b.Remaining(), err)
	}
	if before, err := n.ResetBucket(t.Context(), "all:"); err != nil || before.Missing() != 3*bucket.Token {
		t.Errorf("reset: %v missing, %v", before.Missing(), err)
	}
	c.cut(down)
	if d := n.take(10); !d.Allowed || !d.Degraded {
		t.Errorf("after a reset the local bucket begins with what was missing before: %+v", d)
	}
}

// Bucket reads the store instead of the memory, also for shards.
func TestBucket_IsFresh(t *testing.T) {
	c := start(t, 1, `{"name": "all", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rps": 1, "burst": 10, "shards": 4}}`)
	n := c.nodes[0]
	asked := 0
	n.line.hook = func(mode mete.Mode) {
		if asked++; !mode.Fresh {
			t.Errorf("the store was asked with %+v", mode)
		}
	}
	if _, err := n.Bucket(t.Context(), "all:"); err != nil {
		t.Error(err)
	}
	if _, taken, err := n.TakeBucket(t.Context(), "all:", 7); err != nil || taken != 7*bucket.Token {
		t.Errorf("took %v, %v", taken, err)
	}
	if _, err := n.ResetBucket(t.Context(), "all:"); err != nil {
		t.Error(err)
	}
	if asked < 4 {
		t.Errorf("the store was asked %d times", asked)
	}
	n.line.hook = nil
	if got := n.drain(); got != 10 {
		t.Errorf("%d were left after the reset, want 10", got)
	}
}
