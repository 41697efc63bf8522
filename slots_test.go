// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const twoSlots = `{"name": "jobs", "limit_keys": [], "algorithm": "concurrency", "max": 2, "lease": "30s"}`

func release(t *testing.T, d *mete.Decision) {
	t.Helper()
	if err := d.Slots.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// G13: a request holds its slot until it releases it, and for one lease at most.
func TestSlots(t *testing.T) {
	r := newRig(t, `{"rules": [`+twoSlots+`]}`)
	first, second := r.take(nil), r.take(nil)
	if !first.Allowed || !second.Allowed || first.Slots.ID() == second.Slots.ID() || first.Slots.Lease() != 30*time.Second || first.Taken != bucket.Token {
		t.Fatalf("got %+v and %+v, want two slots", first, second)
	}
	r.clock.Advance(10_000_000)
	if d := r.take(nil); d.Allowed || d.Slots != nil || d.Reason != "concurrency_exceeded" || d.RetryAfter != 20*time.Second {
		t.Errorf("a third request: got %+v", d)
	}
	release(t, &first)
	release(t, &first) // again: nothing happens
	third := r.take(nil)
	if !third.Allowed || r.take(nil).Allowed {
		t.Fatal("a release must free one slot")
	}
	if err := third.Slots.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	r.clock.Advance(20_000_000) // the second ends
	if err := second.Slots.Renew(t.Context()); !errors.Is(err, mete.ErrSlotEnded) {
		t.Errorf("renewal of an ended slot: %v", err)
	}
	if d := r.take(nil); !d.Allowed {
		t.Error("the slot of a crashed holder must be free after its lease")
	}
	release(t, &second) // another request has the place now
	if r.take(nil).Allowed {
		t.Error("the late release of an ended slot freed another request's")
	}
}

// Slots and tokens are taken in one step: all or none.
func TestSlots_WithOtherLimits(t *testing.T) {
	r := newRig(t, `{"rules": [`+twoSlots+`, {"name": "rate", "limit_keys": ["query:x"], "rate": "3/1h", "group": "g"}]}`)
	x := mete.Attrs{"query:x": "1"}
	a, b := r.take(x), r.take(x)
	if !a.Allowed || !b.Allowed {
		t.Fatal("two of two slots denied")
	}
	if d := r.take(x); d.Allowed || d.Rule != "jobs" {
		t.Errorf("got %+v, want a denial by jobs", d)
	}
	r.holds(x, 0, 1) // the denied request paid nothing
	release(t, &a)
	if d := r.take(x); !d.Allowed {
		t.Fatal("a released slot was not free")
	}
	release(t, &b)
	if d := r.take(x); d.Allowed || d.Rule != "rate" {
		t.Errorf("got %+v, want a denial by rate", d)
	}
	r.holds(x, 1, 0) // the denied request holds no slot
}

func TestSlots_NoneAreHeld(t *testing.T) {
	var none *mete.Slots
	none.KeepAlive()
	none.ReleaseSoon(t.Context())
	if none.ID() != (bucket.SlotID{}) || none.Lease() != 0 || none.Renew(t.Context()) != nil || none.Release(t.Context()) != nil {
		t.Error("a nil *Slots must accept all calls")
	}
	r := newRig(t, `{"rules": [`+twoSlots+`]}`)
	peeked, err := r.Peek(t.Context(), mete.Request{})
	charged, err2 := r.Charge(t.Context(), mete.Request{})
	if err != nil || err2 != nil || peeked.Slots != nil || charged.Slots != nil || !charged.Allowed {
		t.Errorf("peek %+v, charge %+v: want no slots: neither runs a request", peeked, charged)
	}
	r.holds(nil, 2)
}

// A retry with the ID of a request holds the same slots, and Refund with that ID releases them.
func TestSlots_ID(t *testing.T) {
	r := newRig(t, `{"rules": [`+twoSlots+`]}`)
	req := mete.Request{ID: "job-1"}
	var ids [2]bucket.SlotID
	for i := range ids {
		d, err := r.Take(t.Context(), req)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		ids[i] = d.Slots.ID()
	}
	if ids[0] != ids[1] {
		t.Errorf("a retry got the slots %s, want %s", ids[1], ids[0])
	}
	r.holds(nil, 1)
	if err := r.Refund(t.Context(), mete.Request{}); err != nil { // names no slot
		t.Error(err)
	}
	r.holds(nil, 1)
	if err := r.Refund(t.Context(), req); err != nil {
		t.Error(err)
	}
	r.holds(nil, 2)
}

// Another process renews and releases by the ID and the request.
func TestSlots_InAnotherProcess(t *testing.T) {
	r := newRig(t, `{"rules": [`+twoSlots+`]}`)
	d := r.take(nil)
	r.clock.Advance(29_000_000)
	held := mete.Request{Slot: d.Slots.ID()}
	if lease, err := r.RenewSlots(t.Context(), held); err != nil || lease != 30*time.Second {
		t.Error(lease, err)
	}
	r.clock.Advance(29_000_000)
	r.holds(nil, 1)
	if d, err := r.Take(t.Context(), held); err != nil || !d.Allowed || d.Slots.ID() != held.Slot { // a further message of a stream
		t.Error(d, err)
	}
	r.holds(nil, 1)
	if err := r.ReleaseSlots(t.Context(), held); err != nil {
		t.Error(err)
	}
	r.holds(nil, 2)
	if _, err := r.RenewSlots(t.Context(), held); !errors.Is(err, mete.ErrSlotEnded) {
		t.Errorf("renewal of a released slot: %v", err)
	}
	if err := r.ReleaseSlots(t.Context(), mete.Request{}); !errors.Is(err, mete.ErrRequest) {
		t.Errorf("without an ID: %v", err)
	}
	bare := newRig(t, nested)
	if err := bare.ReleaseSlots(t.Context(), held); !errors.Is(err, mete.ErrRequest) {
		t.Errorf("a request without slots: %v", err)
	}
}

// A rule in shadow takes slots too, and denies nothing.
func TestSlots_Shadow(t *testing.T) {
	r := newRig(t, `{"rules": [{"name": "jobs", "mode": "shadow", "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "30s"}]}`)
	first, second := r.take(nil), r.take(nil)
	if !second.Allowed || second.Shadow[0].Allowed || first.Slots == nil || second.Slots != nil {
		t.Fatalf("got %+v, want that only the first holds a slot", second)
	}
	release(t, &first)
	if d := r.take(nil); !d.Shadow[0].Allowed {
		t.Error("the slot in shadow was not released")
	}
}

// Parts of one request hold one slot together, and so do charges of the request.
func TestSlots_PartsAndCharges(t *testing.T) {
	r := newRig(t, `{"rules": [`+twoSlots+`]}`)
	limit := policyLimit(t, r.Policy())
	d, err := r.Take(t.Context(), mete.Request{Parts: []mete.Part{{}, {}, {}}, Charges: []mete.Charge{{Key: "own", Limit: limit, Cost: 5}, {Key: "own", Limit: limit, Cost: 1}}})
	if err != nil || !d.Allowed || d.Limits()[0].Cost != bucket.Token || d.Limits()[1].Cost != bucket.Token {
		t.Fatalf("got %+v, %v: want one slot of each key", d, err)
	}
	release(t, &d)
	r.holds(nil, 2)
	if _, err := r.Take(t.Context(), mete.Request{Charges: []mete.Charge{{Key: "own", Limit: limit, Cost: 1, Shards: 2}}}); !errors.Is(err, mete.ErrRequest) {
		t.Errorf("a concurrency limit with shards: %v", err)
	}
}

func policyLimit(t *testing.T, m *policy.Matcher) bucket.Limit {
	t.Helper()
	return m.Rules()[0].Limits[0].Bucket
}

// Each end of a reservation releases its slots.
func TestSlots_Reservation(t *testing.T) {
	for name, end := range map[string]func(context.Context, *mete.Reservation) error{
		"settle": func(ctx context.Context, r *mete.Reservation) error { return r.Settle(ctx, 1) },
		"cancel": func(ctx context.Context, r *mete.Reservation) error { return r.Cancel(ctx) },
		"finish": func(ctx context.Context, r *mete.Reservation) error { return r.Finish(ctx, policy.Response{}) },
	} {
		r := newRig(t, `{"rules": [`+twoSlots+`]}`)
		reservation, err := r.Reserve(t.Context(), mete.Request{})
		if err != nil {
			t.Fatal(err)
		}
		r.holds(nil, 1)
		if err := end(t.Context(), reservation); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.holds(nil, 2); t.Failed() {
			t.Fatalf("after %s", name)
		}
	}
}

// newSlotLimiter returns a limiter over memory with the clock of the bubble.
func newSlotLimiter(t *testing.T, rules string) (*mete.Limiter, mete.Store) {
	t.Helper()
	s, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now()) }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, load(t, `{"rules": [`+rules+`]}`), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// KeepAlive holds the slots of a request that runs longer than a lease, and ends with the release.
func TestSlots_KeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := newSlotLimiter(t, twoSlots)
		long, err := l.Take(t.Context(), mete.Request{})
		crashed, err2 := l.Take(t.Context(), mete.Request{})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		long.Slots.KeepAlive()
		long.Slots.KeepAlive()
		time.Sleep(10 * time.Minute)
		free := func() int64 {
			d, err := l.Peek(t.Context(), mete.Request{})
			if err != nil {
				t.Fatal(err)
			}
			return d.Limits()[0].Remaining().Whole()
		}
		if got := free(); got != 1 {
			t.Errorf("%d slots are free, want the crashed one's", got)
		}
		if err := crashed.Slots.Renew(t.Context()); !errors.Is(err, mete.ErrSlotEnded) {
			t.Errorf("renewal of the crashed one: %v", err)
		}
		if err := s.Reset(t.Context(), []string{long.Limits()[0].Key}); err != nil { // an admin, or a store that lost them
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if got := free(); got != 1 {
			t.Errorf("%d slots are free, want that a running request takes its slot again", got)
		}
		if release(t, &long); free() != 2 {
			t.Error("the slot is still held")
		}
		time.Sleep(time.Minute)
		if got := free(); got != 2 {
			t.Errorf("%d slots are free, want 2: renewals ended with the release", got)
		}
	})
}

// Wait polls for a slot, because a request may release its slot at any time.
func TestSlots_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newSlotLimiter(t, twoSlots)
		var held []mete.Decision
		for range 2 {
			d, err := l.Take(t.Context(), mete.Request{})
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, d)
		}
		began := time.Now()
		if _, err := l.Wait(t.Context(), mete.Request{MaxWait: time.Second}); !errors.Is(err, mete.ErrDeadlineTooSoon) || time.Since(began) > time.Second {
			t.Errorf("without a release: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		time.AfterFunc(2*time.Second, func() { _ = held[0].Slots.Release(context.Background()) })
		d, err := l.Wait(t.Context(), mete.Request{MaxWait: 10 * time.Second})
		if err != nil || !d.Allowed || d.Slots == nil || time.Since(began) > 2200*time.Millisecond {
			t.Errorf("got %+v, %v after %v, want the released slot", d, err, time.Since(began))
		}
		began = time.Now()
		if d, err := l.Wait(t.Context(), mete.Request{}); err != nil || !d.Allowed || time.Since(began) > 31*time.Second {
			t.Errorf("got %v after %v, want a slot after a lease", err, time.Since(began))
		}
	})
}

// Two limiters over one store, and many requests: never above max, and all slots are free at the end.
func TestSlots_Concurrently(t *testing.T) {
	l, _ := newSlotLimiter(t, `{"name": "jobs", "limit_keys": [], "algorithm": "concurrency", "max": 3, "lease": "10m"}`)
	var running, most, admitted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				d, err := l.Take(context.Background(), mete.Request{})
				if err != nil {
					t.Error(err)
					return
				}
				if !d.Allowed {
					continue
				}
				admitted.Add(1)
				now := running.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				running.Add(-1)
				d.Slots.ReleaseSoon(context.Background())
			}
		})
	}
	all.Wait()
	// On a slow machine, a release that took longer than a take may is repeated in the background.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := l.Peek(ctx, mete.Request{})
	for err == nil && d.Limits()[0].Remaining() != 3*bucket.Token && ctx.Err() == nil {
		runtime.Gosched()
		d, err = l.Peek(ctx, mete.Request{})
	}
	if err != nil || most.Load() > 3 || admitted.Load() == 0 || d.Limits()[0].Remaining() != 3*bucket.Token {
		t.Errorf("%d ran at once, %d in total, %v free at the end: want at most 3, and 3 free (%v)", most.Load(), admitted.Load(), d.Limits()[0].Remaining(), err)
	}
}

func slotRule(onError string) string {
	return fmt.Sprintf(`{"name": "all", "limit_keys": [], "on_store_error": %q, "algorithm": "concurrency", "max": 4, "lease": "30s"}`, onError)
}

// During an outage each node has its share of the slots.
func TestSlots_Local(t *testing.T) {
	c := start(t, 2, slotRule("local"))
	c.cut(down)
	for i, n := range c.nodes {
		var held []mete.Decision
		for range 3 {
			held = append(held, n.take(0))
		}
		if !held[1].Allowed || held[2].Allowed || held[2].Reason != "concurrency_exceeded" || !held[0].Degraded {
			t.Fatalf("node %d got %+v, want 2 of 4 slots", i, held)
		}
		c.advance(20)
		if err := held[0].Slots.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, &held[0])
		if again := n.take(0); !again.Allowed {
			t.Errorf("node %d: a local slot was not released", i)
		}
		if s := n.Stats(); s.SpentLocally != 0 || s.Excess != 0 || s.Unsettled != 0 {
			t.Errorf("node %d: %+v, want no costs: slots are not spent", i, s)
		}
	}
	c.cut(up)
	if d := c.nodes[0].take(0); !d.Allowed || d.Degraded {
		t.Errorf("after the outage: %+v", d)
	}
}

// A slot that the store may have taken without an answer is released with the request, or at once after a denial.
func TestSlots_LostAnswer(t *testing.T) {
	for _, onError := range []string{"open", "closed"} {
		c := start(t, 1, slotRule(onError))
		n := c.nodes[0]
		n.line.cut(lossy)
		d := n.take(0)
		if d.Allowed != (onError == "open") || !d.Degraded {
			t.Fatalf("%s: %+v", onError, d)
		}
		n.line.cut(up)
		if onError == "open" {
			if err := d.Slots.Renew(t.Context()); !errors.Is(err, nil) && !errors.Is(err, mete.ErrSlotEnded) {
				t.Error(err)
			}
			release(t, &d)
		}
		limit := policyLimit(t, n.Policy())
		faulttest.Eventually(t, "the slot of the lost answer is free, "+onError, func() error {
			snaps, _, err := c.store.Take(t.Context(), nil, []store.Charge{{Key: "all:", Limit: limit}}, mete.Mode{DryRun: true})
			if err == nil && snaps[0].Missing() != 0 {
				err = errors.New("the slot is held")
			}
			return err
		})
	}
}

// After a release, the memory of denials does not deny the next request.
func TestSlots_DenyFor(t *testing.T) {
	c := startDenying(t, 1, slotRule("open"), time.Hour)
	n := c.nodes[0]
	var held []mete.Decision
	for range 4 {
		held = append(held, n.take(0))
	}
	for range 2 { // the second may be denied from memory
		if n.take(0).Allowed {
			t.Fatal("a fifth slot of four")
		}
	}
	release(t, &held[0])
	if !n.take(0).Allowed {
		t.Error("denied although a slot is free")
	}
}

func BenchmarkSlots(b *testing.B) {
	for name, rule := range map[string]string{"token bucket": `{"name": "r", "limit_keys": [], "rate": "1000000000/1s"}`,
		"slots": `{"name": "r", "limit_keys": [], "algorithm": "concurrency", "max": 100, "lease": "30s"}`} {
		b.Run(name, func(b *testing.B) {
			s, err := memstore.New(memstore.Config{})
			if err != nil {
				b.Fatal(err)
			}
			l, err := mete.New(s, load(b, `{"rules": [`+rule+`]}`), mete.Config{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				d, err := l.Take(context.Background(), mete.Request{})
				if err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
				if err := d.Slots.Release(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
