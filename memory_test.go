// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/storetest"
)

// A far store is a wire to a store, behind a limiter that denies from memory.
type far struct {
	rig
	line *wire
}

// newFar returns a limiter with Config.DenyFor.
func newFar(t *testing.T, config mete.Config) far {
	t.Helper()
	clock := storetest.NewClock()
	line := &wire{Store: storetest.NewModel(clock.Now)}
	if config.Now = clock.Now; config.DenyFor == 0 {
		config.DenyFor = time.Hour
	}
	l, err := mete.New(line, load(t, `{"rules": [`+localRule+`]}`), config)
	if err != nil {
		t.Fatal(err)
	}
	return far{rig{t, l, clock}, line}
}

// emptied returns a limiter with an empty bucket that has just been denied. The store was called twice.
func emptied(t *testing.T) far {
	t.Helper()
	f := newFar(t, mete.Config{Local: storetest.NewModel(storetest.NewClock().Now)})
	f.takes(10, true, 1)
	f.takes(1, false, 2)
	return f
}

// takes takes tokens, and asserts the decision and the number of store calls so far.
func (f far) takes(tokens int, allowed bool, asked int64) mete.Decision {
	f.Helper()
	d, err := f.Take(f.Context(), mete.Request{Cost: mete.TokensOf(bucket.Tokens(tokens) * bucket.Token)})
	if err != nil || d.Allowed != allowed {
		f.Errorf("take %d: allowed %v, error %v; want %v", tokens, d.Allowed, err, allowed)
	}
	if got := f.line.takes.Load(); got != asked {
		f.Errorf("take %d: the store was asked %d times, want %d", tokens, got, asked)
	}
	return d
}

func TestDenyFor_HammeringAsksOnce(t *testing.T) {
	f := emptied(t)
	for step := range 1000 { // a second passes
		d := f.takes(1, false, 2)
		if want := time.Second - time.Duration(step)*time.Millisecond; d.RetryAfter != want || d.Rule != "all" || d.Degraded {
			t.Fatalf("after %d ms: %+v, want denied for %v", step, d, want)
		}
		f.clock.Advance(1000)
	}
	if s := f.Stats(); s.DeniedFromMemory != 1000 || s.DenyKeys != 1 {
		t.Errorf("%+v, want 1000 denied from memory and 1 key", s)
	}
	f.takes(1, true, 3)
}

func TestDenyFor_NotSet(t *testing.T) {
	f := start(t, 1, localRule).nodes[0]
	for range 3 {
		f.take(11)
	}
	if got, s := f.line.takes.Load(), f.Stats(); got != 3 || s.DeniedFromMemory != 0 || s.DenyKeys != 0 {
		t.Errorf("the store was asked %d times, %+v; want 3 times", got, s)
	}
}

// The limiter sees its own refunds and resets, even if the answer is lost.
func TestDenyFor_SeesWhatIsGivenBack(t *testing.T) {
	for name, give := range map[string]func(f far, r *mete.Reservation) error{
		"refund": func(f far, _ *mete.Reservation) error {
			return f.Refund(f.Context(), mete.Request{Cost: 1})
		},
		"reset":        func(f far, _ *mete.Reservation) error { return f.Reset(f.Context(), mete.Request{}) },
		"reset bucket": func(f far, _ *mete.Reservation) error { _, err := f.ResetBucket(f.Context(), "all:"); return err },
		"settle":       func(f far, r *mete.Reservation) error { return r.Settle(f.Context(), 9) },
		"cancel":       func(f far, r *mete.Reservation) error { return r.Cancel(f.Context()) },
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, answer lost: %v", name, lost), func(t *testing.T) {
				f := newFar(t, mete.Config{Local: storetest.NewModel(storetest.NewClock().Now)})
				r := f.reserve(mete.Request{Cost: 10})
				f.takes(1, false, 2)
				f.takes(1, false, 2)
				f.line.Store = &forgetful{f.line.Store, lost}
				if err := give(f, r); (err != nil) != lost {
					t.Fatalf("error %v", err)
				}
				f.takes(1, true, f.line.takes.Load()+1)
			})
		}
	}
}

// A forgetful store may lose its answers to refunds and resets.
type forgetful struct {
	mete.Store
	lost bool
}

func (f *forgetful) answer(err error) error {
	if err == nil && f.lost {
		err = errors.New("the answer was lost")
	}
	return err
}

func (f *forgetful) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	return f.answer(f.Store.Refund(ctx, refunds, id))
}

func (f *forgetful) Reset(ctx context.Context, keys []string) error {
	return f.answer(f.Store.Reset(ctx, keys))
}

// The limiter sees its own takes: a denial from memory includes their cost.
func TestDenyFor_SeesWhatIsTaken(t *testing.T) {
	for name, take := range map[string]func(f far, r *mete.Reservation) error{
		"charge": func(f far, _ *mete.Reservation) error {
			_, err := f.Charge(f.Context(), mete.Request{Cost: 1})
			return err
		},
		"a part": func(f far, _ *mete.Reservation) error {
			_, err := f.TakeUpTo(f.Context(), mete.Request{Cost: 1})
			return err
		},
		"take bucket": func(f far, _ *mete.Reservation) error {
			_, _, err := f.TakeBucket(f.Context(), "all:", 1)
			return err
		},
		"settle": func(f far, r *mete.Reservation) error { return r.Settle(f.Context(), 8) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFar(t, mete.Config{Local: storetest.NewModel(storetest.NewClock().Now)})
			r := f.reserve(mete.Request{Cost: 7})
			f.takes(5, false, 2)
			f.takes(5, false, 2)
			if err := take(f, r); err != nil {
				t.Fatal(err)
			}
			asked := f.line.takes.Load()
			if d := f.takes(5, false, asked); d.RetryAfter != 3*time.Second || d.Limits()[0].Remaining() != 2*bucket.Token {
				t.Errorf("%+v, want 2 tokens left, and denied for 3 s", d)
			}
		})
	}
}

// A take without a certain denial goes to the store.
func TestDenyFor_AsksTheStore(t *testing.T) {
	for name, ask := range map[string]func(f far) error{
		"an ID":                func(f far) error { _, err := f.Take(f.Context(), mete.Request{ID: "x"}); return err },
		"a part":               func(f far) error { _, err := f.TakeUpTo(f.Context(), mete.Request{}); return err },
		"a charge":             func(f far) error { _, err := f.Charge(f.Context(), mete.Request{}); return err },
		"a wait":               func(f far) error { _, err := f.Take(f.Context(), mete.Request{MaxWait: time.Millisecond}); return err },
		"a look at the bucket": func(f far) error { _, err := f.Bucket(f.Context(), "all:"); return err },
		"another bucket": func(f far) error {
			_, err := f.Take(f.Context(), one("k", limit(f.T, 5, "1/1s"), bucket.Token))
			return err
		},
		"shards": func(f far) error {
			req := one("k", limit(f.T, 5, "1/1s"), bucket.Token)
			req.Charges[0].Shards = 2
			_, err := f.Take(f.Context(), req)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := emptied(t)
			if err := ask(f); err != nil {
				t.Fatal(err)
			}
			if got := f.line.takes.Load(); got < 3 {
				t.Errorf("the store was asked %d times, want more than 2", got)
			}
		})
	}
}

// A denied bucket stays denied during an outage, before a local bucket decides.
func TestDenyFor_WhileTheStoreIsDown(t *testing.T) {
	f := emptied(t)
	f.line.cut(down)
	if d := f.takes(1, false, 2); d.Degraded {
		t.Errorf("%+v, want a denial by the last known state", d)
	}
	f.clock.Advance(2e6)
	if d := f.takes(1, true, 3); !d.Degraded {
		t.Errorf("%+v, want a local decision: 2 tokens have refilled", d)
	}
	f.line.cut(up)
	f.takes(2, false, 5) // the first take is the charge of the local cost
	f.takes(2, false, 5)
}

// A transaction sees its own changes and can be rolled back. A denial inside it has no effect outside, and vice
// versa.
func TestDenyFor_NotInATransaction(t *testing.T) {
	clock := storetest.NewClock()
	line := &wire{Store: &joining{storetest.NewModel(clock.Now), storetest.NewModel(clock.Now)}}
	l, err := mete.New(line, nil, mete.Config{DenyFor: time.Second, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	tx := context.WithValue(t.Context(), inTx{}, true)
	all := one("k", limit(t, 10, "1/1s"), 10*bucket.Token)
	take := func(ctx context.Context) bool {
		t.Helper()
		d, err := l.Take(ctx, all)
		if err != nil || d.Degraded {
			t.Fatalf("%+v, error %v", d, err)
		}
		return d.Allowed
	}
	if !take(tx) || take(tx) {
		t.Fatal("of two takes of all in the transaction, not the first alone was admitted")
	}
	clock.Advance(1)
	if !take(t.Context()) || take(t.Context()) {
		t.Error("of two takes of all outside, not the first alone was admitted")
	}
	clock.Advance(1)
	if err := l.Refund(tx, all); err != nil {
		t.Fatal(err)
	}
	if take(t.Context()) {
		t.Error("admitted by what a transaction gave back that was rolled back")
	}
	clock.Advance(1)
	if !take(tx) {
		t.Error("denied in the transaction, which has given the tokens back")
	}
}

// Costs charged by recovery are in the memory for the next outage. Denials from memory do not change the bound.
func TestDenyFor_OutagesKeepTheBound(t *testing.T) {
	denied := uint64(0)
	for _, rule := range []string{
		bursty,
		`"algorithm_config": {"refill": "interval", "rate": "30/5s", "burst": 60}`,
		`"algorithm": "fixed_window", "algorithm_config": {"tokens": 60, "window": "9s", "anchor": "key"}`,
		`"algorithm": "sliding_window", "algorithm_config": {"tokens": 60, "window": "9s"}`,
		`"algorithm": "sliding_log", "algorithm_config": {"tokens": 60, "window": "9s"}`,
	} {
		for seed := range uint64(8) {
			c, b := schedule{nodes: 1, faults: []fault{down, silent, lossy}, rule: rule, denyFor: time.Second}.run(t, seed)
			if b.worst > 100 {
				t.Errorf("%s, seed %d: %v beyond the bound, stats %+v", rule, seed, b.worst, c.stats())
			}
			denied += c.nodes[0].Stats().DeniedFromMemory
			// With several nodes, none denies from memory a cost that the store would admit.
			schedule{nodes: 3, faults: []fault{down, silent, lossy}, rule: rule, denyFor: time.Second}.run(t, seed)
		}
	}
	if denied < 1000 {
		t.Errorf("only %d takes were denied from memory", denied)
	}
}

// Limits with and without on_store_error: local use the same memory.
func TestDenyFor_WithoutLocal(t *testing.T) {
	clock := storetest.NewClock()
	line := &wire{Store: storetest.NewModel(clock.Now)}
	for name, config := range map[string]mete.Config{
		"no local store": {}, "a local store": {Local: storetest.NewModel(clock.Now)},
	} {
		config.DenyFor, config.DenyKeys, config.Now = time.Hour, 16, clock.Now
		l, err := mete.New(line, nil, config)
		if err != nil {
			t.Fatal(err)
		}
		line.takes.Store(0)
		for i := range 100 {
			req := one(fmt.Sprint(name, i), limit(t, 5, "1/1h"), 5*bucket.Token)
			for range 4 { // admitted, denied, and denied from memory
				if _, err := l.Take(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			clock.Advance(1)
		}
		s := l.Stats()
		if got := line.takes.Load(); got != 200 || s.DeniedFromMemory != 200 {
			t.Errorf("%s: the store was asked %d times, %+v; want 200, and 200 denied from memory", name, got, s)
		}
		if config.Local == nil && s.DenyKeys != 16 {
			t.Errorf("%s: %d keys are remembered, want 16", name, s.DenyKeys)
		}
	}
}

// The expiry of costs in a sliding log is unknown, so its content cannot be shown exactly.
func TestDenyFor_Exactly(t *testing.T) {
	log := compile(t, bucket.Spec{Algorithm: bucket.AlgorithmSlidingLog, Rate: bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Minute}})
	for _, exactly := range []bool{false, true} {
		f := newFar(t, mete.Config{Local: storetest.NewModel(storetest.NewClock().Now), DenyExactly: exactly})
		for range 4 {
			if _, err := f.Take(t.Context(), one("k", log, 6*bucket.Token)); err != nil {
				t.Fatal(err)
			}
		}
		want := int64(2)
		if exactly {
			want = 4
		}
		if got := f.line.takes.Load(); got != want {
			t.Errorf("DenyExactly %v: the store was asked %d times, want %d", exactly, got, want)
		}
	}
}

func TestDenyFor_Wrong(t *testing.T) {
	store := storetest.NewModel(storetest.NewClock().Now)
	for _, tt := range []struct {
		config mete.Config
		want   []string
	}{
		{mete.Config{DenyFor: -1}, []string{"DenyFor -1ns"}},
		{mete.Config{DenyKeys: -1}, []string{"DenyKeys -1"}},
		{mete.Config{DenyKeys: 1 << 30}, []string{"DenyKeys 1073741824"}},
		{mete.Config{DenyFor: -1, DenyKeys: -1, Deadline: -1}, []string{"DenyFor", "DenyKeys", "deadline"}},
	} {
		l, err := mete.New(store, nil, tt.config)
		if l != nil || err == nil {
			t.Fatalf("New(%+v) = %v, %v; want an error", tt.config, l, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("New(%+v): %v; want %q in it", tt.config, err, want)
			}
		}
	}
}
