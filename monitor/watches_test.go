// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// watchedRules has an enforced rule, one in shadow, and one that can deny both.
const watchedRules = `{"rules": [
	{"name": "user", "group": "1", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1h", "burst": 2}},
	{"name": "trial", "group": "2", "mode": "shadow", "limit_keys": ["header:x-user"], "algorithm_config": {"rate": "1/1h", "burst": 1}},
	{"name": "path", "group": "3", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`

// watchedLimiter has watchedRules, a rule for many takes, and one that a process decides
// without the store.
func watchedLimiter(t *testing.T, store mete.Store, config mete.Config) *mete.Limiter {
	t.Helper()
	rules := strings.TrimSuffix(watchedRules, "]}")
	rules += `,
	{"name": "all", "group": "4", "match": {"path": "/many"}, "limit_keys": [], "algorithm_config": {"rate": "1/1h", "burst": 1000000}}`
	if config.Local != nil {
		rules = `{"rules": [{"name": "all", "match": {"path": "/local"}, "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/1h", "burst": 1}}`
	}
	m, err := policy.Load([]byte(rules+"]}"), policy.Options{HashKey: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(store, m, config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fivePerHour(t *testing.T) bucket.Limit {
	limit, err := bucket.NewLimit(5*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// A brokenStore answers no take.
type brokenStore struct{ mete.Store }

func (brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, errors.New("broken")
}

func TestWatches(t *testing.T) {
	var seen []string
	watches := new(monitor.Watches)
	l := watchedLimiter(t, storetest.NewModel(storetest.NewClock().Now), mete.Config{
		OnDecision: func(ctx context.Context, d *mete.Decision) {
			seen = append(seen, "hook")
			watches.OnDecision(ctx, d)
		},
	})
	watch := func(key string) (stop func()) {
		stop, err := watches.Watch(key, func(_ context.Context, d *mete.Decision, s *mete.Status) {
			if !slices.ContainsFunc(d.Limits(), func(other mete.Status) bool { return other == *s }) && !slices.ContainsFunc(d.Shadow, func(other mete.Status) bool { return other == *s }) {
				t.Errorf("%s: the status is none of the decision", key)
			}
			seen = append(seen, fmt.Sprintf("%s %t %t %v", key, d.Allowed, s.Allowed, s.Remaining()))
		})
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	alice := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}}
	onPath := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice", "path": "/"}}
	mine := mete.Request{Charges: []mete.Charge{{Key: "mine", Limit: fivePerHour(t), Cost: 1}}}
	stops := []func(){watch("user:x-user=alice"), watch("trial:x-user=alice"), watch("mine"), watch("user:x-user=bob"), watch("")}
	ctx := t.Context()
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"take", func() error { _, err := l.Take(ctx, alice); return err }, "hook|user:x-user=alice true true 1|trial:x-user=alice true true 0"},
		{"peek", func() error { _, err := l.Peek(ctx, alice); return err }, ""},
		{"explain", func() error { _, err := l.Explain(ctx, alice); return err }, ""},
		{"look", func() error { _, err := l.Bucket(ctx, "user:x-user=alice"); return err }, ""},
		{"of another", func() error {
			_, err := l.Take(ctx, mete.Request{Attributes: mete.Attrs{"header:x-user": "eve"}})
			return err
		}, "hook"},
		{"reserve", func() error { _, err := l.Reserve(ctx, onPath); return err }, "hook|user:x-user=alice true true 0|trial:x-user=alice true false 0"},
		{"denied by both", func() error { _, err := l.Take(ctx, onPath); return err }, "hook|user:x-user=alice false false 0"},
		{"denied by another", func() error {
			if err := l.Reset(ctx, alice); err != nil {
				return err
			}
			_, err := l.Take(ctx, onPath)
			return err
		}, "hook|user:x-user=alice false true 2"},
		{"up to", func() error {
			_, err := l.TakeUpTo(ctx, mete.Request{Attributes: alice.Attributes, Cost: 9})
			return err
		},
			"hook|user:x-user=alice true true 0|trial:x-user=alice true true 0"},
		{"charge", func() error { _, err := l.Charge(ctx, alice); return err }, "hook|user:x-user=alice true true 0|trial:x-user=alice true true 0"},
		{"own charges", func() error { _, err := l.Wait(ctx, mine); return err }, "hook|mine true true 4"},
	} {
		seen = nil
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := strings.Join(seen, "|"); got != step.want {
			t.Errorf("%s:\n got %s\nwant %s", step.name, got, step.want)
		}
	}
	for _, stop := range stops {
		stop()
		stop()
	}
	seen = nil
	if _, err := l.Take(ctx, mine); err != nil || len(seen) != 1 {
		t.Errorf("after the end: %v, %v", seen, err)
	}
}

// A decision without the store shows the local bucket as degraded.
func TestWatches_Degraded(t *testing.T) {
	watches := new(monitor.Watches)
	local := storetest.NewModel(storetest.NewClock().Now)
	l := watchedLimiter(t, brokenStore{local}, mete.Config{OnDecision: watches.OnDecision, Local: local})
	var seen []bool
	stop, err := watches.Watch("all:", func(_ context.Context, d *mete.Decision, s *mete.Status) {
		seen = append(seen, d.Degraded && s.Allowed)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"path": "/local"}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen, []bool{true}) {
		t.Errorf("seen %v", seen)
	}
}

// A watch can stop within its function. The bound frees a place after a stop.
func TestWatches_Bounds(t *testing.T) {
	watches := new(monitor.Watches)
	l := watchedLimiter(t, storetest.NewModel(storetest.NewClock().Now), mete.Config{OnDecision: watches.OnDecision})
	take := func() {
		if _, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}}); err != nil {
			t.Fatal(err)
		}
	}
	var stops []func()
	called := 0
	for i := range monitor.MaxWatches {
		stop, err := watches.Watch("user:x-user=alice", func(context.Context, *mete.Decision, *mete.Status) {
			called++
			stops[i]()
		})
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	if _, err := watches.Watch("other", nil); err == nil || !strings.Contains(err.Error(), fmt.Sprint(monitor.MaxWatches)) {
		t.Errorf("one more: %v", err)
	}
	take()
	take()
	if called != monitor.MaxWatches {
		t.Errorf("called %d times, want %d", called, monitor.MaxWatches)
	}
	stops[0]()
	for range monitor.MaxWatches {
		if _, err := watches.Watch("other", nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatches_Concurrent(t *testing.T) {
	watches := new(monitor.Watches)
	l := watchedLimiter(t, storetest.NewModel(storetest.NewClock().Now), mete.Config{OnDecision: watches.OnDecision})
	const takes = 200
	var all, some atomic.Int64
	keep, err := watches.Watch("all:", func(context.Context, *mete.Decision, *mete.Status) { all.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	defer keep()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range takes {
				if _, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"path": "/many"}}); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range takes {
				var over atomic.Bool
				stop, err := watches.Watch("all:", func(context.Context, *mete.Decision, *mete.Status) { some.Add(1) })
				if err != nil {
					t.Error(err)
					return
				}
				if over.Store(true); over.Load() {
					stop()
				}
			}
		})
	}
	wg.Wait()
	if all.Load() != 8*takes {
		t.Errorf("%d of %d decisions were told", all.Load(), 8*takes)
	}
	t.Logf("%d were told to those who came and went", some.Load())
}

// A decision pays nothing for watches of other buckets, and a watch allocates nothing.
func TestWatches_AllocatesNothing(t *testing.T) {
	measure := func(watched ...string) float64 {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		watches := new(monitor.Watches)
		l := watchedLimiter(t, store, mete.Config{OnDecision: watches.OnDecision})
		for _, key := range watched {
			if _, err := watches.Watch(key, func(context.Context, *mete.Decision, *mete.Status) {}); err != nil {
				t.Fatal(err)
			}
		}
		req := mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}}
		least := math.Inf(1) // with the race detector, pools drop items at random
		for range 50 {
			least = min(least, testing.AllocsPerRun(1, func() { l.Take(t.Context(), req) }))
		}
		return least
	}
	without := measure()
	for _, watched := range [][]string{{"user:x-user=bob"}, {"user:x-user=alice"}, {"user:x-user=alice", "trial:x-user=alice", "user:x-user=alice"}} {
		if with := measure(watched...); with != without {
			t.Errorf("%q watched: %v allocations, want %v as without", watched, with, without)
		}
	}
}

// BenchmarkWatches passes decisions on while a bucket is watched: none, another one, or
// the bucket of the decision.
func BenchmarkWatches(b *testing.B) {
	_, d := decided(b)
	shown := d.WithLimits(mete.Status{Key: "user:alice"})
	for _, key := range []string{"", "user:bob", "user:alice"} {
		b.Run("key="+key, func(b *testing.B) {
			watches := new(monitor.Watches)
			if key != "" {
				if _, err := watches.Watch(key, func(context.Context, *mete.Decision, *mete.Status) {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				watches.OnDecision(b.Context(), &shown)
			}
		})
	}
}
