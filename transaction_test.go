// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A joining store keeps the calls of a transaction in a separate store, which a rollback discards.
type joining struct {
	mete.Store
	inside *storetest.Model
}

type inTx struct{}

func (j *joining) of(ctx context.Context) mete.Store {
	if j.InTransaction(ctx) {
		return j.inside
	}
	return j.Store
}

func (j *joining) InTransaction(ctx context.Context) bool { return ctx.Value(inTx{}) != nil }

func (j *joining) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	return j.of(ctx).Take(ctx, dst, charges, mode)
}

func (j *joining) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	return j.of(ctx).Refund(ctx, refunds, id)
}

func (j *joining) Reset(ctx context.Context, keys []string) error {
	return j.of(ctx).Reset(ctx, keys)
}

// joiner returns a node with a store that joins transactions, and a transaction's context.
func joiner(t *testing.T) (*node, *cluster, context.Context) {
	t.Helper()
	c := &cluster{T: t, clock: storetest.NewClock()}
	c.store = storetest.NewModel(c.clock.Now)
	line := &wire{Store: &joining{c.store, storetest.NewModel(c.clock.Now)}}
	l, err := mete.New(line, load(t, `{"rules": [`+localRule+`]}`), mete.Config{Local: storetest.NewModel(c.clock.Now), Now: c.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &node{t, l, line}, c, context.WithValue(t.Context(), inTx{}, true)
}

// tries takes tokens one by one, and returns the number of admitted ones.
func (n *node) tries(ctx context.Context, times int) (got int) {
	n.Helper()
	for range times {
		d, err := n.Take(ctx, mete.Request{})
		if err != nil {
			n.Fatal(err)
		}
		if d.Allowed {
			got++
		}
	}
	return got
}

// Local costs are a debt of the process. The transaction of the next caller must not contain their charge,
// because it may be rolled back.
func TestRecovery_NotInACallersTransaction(t *testing.T) {
	for name, inTransaction := range map[string]func(*node, context.Context) error{
		"take":   func(n *node, ctx context.Context) error { _, err := n.Take(ctx, mete.Request{}); return err },
		"peek":   func(n *node, ctx context.Context) error { _, err := n.Peek(ctx, mete.Request{}); return err },
		"refund": func(n *node, ctx context.Context) error { return n.Refund(ctx, mete.Request{}) },
		"reset":  func(n *node, ctx context.Context) error { return n.Reset(ctx, mete.Request{}) },
		"bucket": func(n *node, ctx context.Context) error { _, err := n.Bucket(ctx, "all:"); return err },
		"reset a bucket": func(n *node, ctx context.Context) error {
			_, err := n.ResetBucket(ctx, "all:")
			return err
		},
		"recover": func(n *node, ctx context.Context) error { return n.Recover(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			n, c, ctx := joiner(t)
			n.line.cut(down)
			if got := n.tries(t.Context(), 9); got != 9 {
				t.Fatalf("%d of 9 admitted locally", got)
			}
			n.line.cut(up)
			if err := inTransaction(n, ctx); err != nil {
				t.Fatal(err)
			}
			// The transaction is rolled back. Without it, 9 of 10 are spent.
			if got := c.missing("all:", tenOne(t)); got != 9*bucket.Token {
				t.Errorf("the store misses %v, want 9", got)
			}
			if got := n.tries(t.Context(), 20); got != 1 {
				t.Errorf("%d more admitted, want 1", got)
			}
		})
	}
}

// A rolled-back transaction that emptied the bucket must not be remembered.
func TestLocal_LearnsNothingFromATransaction(t *testing.T) {
	n, _, ctx := joiner(t)
	if got := n.tries(ctx, 20); got != 10 {
		t.Fatalf("%d admitted in the transaction, want 10", got)
	}
	n.line.cut(down)
	if got := n.tries(t.Context(), 20); got != 10 {
		t.Errorf("%d admitted locally after the rollback, want 10", got)
	}
}

// A transaction that waits in a queue does not share its answer with other waiters.
func TestWait_LearnsNothingFromATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _, ctx := joiner(t)
		ctx, cancel := context.WithCancel(ctx)
		if _, err := n.Charge(ctx, mete.Request{Cost: 10_000}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := n.Wait(ctx, mete.Request{})
			done <- err
		}()
		synctest.Wait() // until the transaction sleeps for its tokens, the first of the queue
		other := make(chan error, 1)
		go func() {
			_, err := n.Wait(t.Context(), mete.Request{MaxWait: time.Minute})
			other <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the transaction's wait: error %v", err)
		}
		if err := <-other; err != nil {
			t.Errorf("the other's wait: error %v; want admitted, its bucket is full", err)
		}
	})
}
