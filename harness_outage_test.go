// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// Failures of a wire to a store.
type fault int32

const (
	up     fault = iota
	down         // nothing gets through
	silent       // nothing gets through, and the caller does not know
	lossy        // takes are charged, and the answers are lost
)

// A wire is one node's connection to a shared store.
type wire struct {
	mete.Store
	fault atomic.Int32
	takes atomic.Int64
	hook  func(mode mete.Mode) // called before every take, if not nil

	refuses string // the key of takes that always fail
}

func (l *wire) Unwrap() mete.Store { return l.Store }

func (l *wire) cut(f fault) { l.fault.Store(int32(f)) }

func (l *wire) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	l.takes.Add(1)
	if l.hook != nil {
		l.hook(mode)
	}
	if l.refuses == charges[0].Key {
		return dst, false, &mete.StoreError{Op: "take", Store: "wire", Spent: mete.NotSpent, Err: errors.New("no bucket at that key")}
	}
	failure := &mete.StoreError{Op: "take", Store: "wire", Spent: mete.MaybeSpent, Err: context.DeadlineExceeded}
	switch fault(l.fault.Load()) {
	case down:
		return dst, false, &mete.StoreError{Op: "take", Store: "wire", Spent: mete.NotSpent, Err: fmt.Errorf("%w: no route", store.ErrUnavailable)}
	case silent:
		return dst, false, failure
	case lossy:
		if _, _, err := l.Store.Take(ctx, nil, charges, mode); err != nil {
			return dst, false, err
		}
		return dst, false, failure
	}
	return l.Store.Take(ctx, dst, charges, mode)
}

func (l *wire) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	if fault(l.fault.Load()) != up {
		return &mete.StoreError{Op: "refund", Store: "wire", Spent: mete.NotSpent, Err: errors.New("no route")}
	}
	return l.Store.Refund(ctx, refunds, id)
}

// Hold implements [store.Holder].
func (l *wire) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) (snaps []bucket.Snapshot, id string, err error) {
	err = l.callHolds("hold", func(inner store.Holder) (err error) {
		snaps, id, err = inner.Hold(ctx, dst, charges, mode, h)
		return err
	})
	return snaps, id, err
}

// Settle implements [store.Holder].
func (l *wire) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (status store.HoldStatus, err error) {
	err = l.callHolds("settle", func(inner store.Holder) (err error) {
		status, err = inner.Settle(ctx, id, actual...)
		return err
	})
	return status, err
}

// Renew implements [store.Holder].
func (l *wire) Renew(ctx context.Context, id string, ttl time.Duration) (status store.HoldStatus, err error) {
	err = l.callHolds("renew", func(inner store.Holder) (err error) {
		status, err = inner.Renew(ctx, id, ttl)
		return err
	})
	return status, err
}

func (l *wire) callHolds(op string, f func(store.Holder) error) error {
	inner, ok := store.As[store.Holder](l.Store)
	if !ok {
		return errors.ErrUnsupported
	}
	switch fault(l.fault.Load()) {
	case down:
		return &mete.StoreError{Op: op, Store: "wire", Spent: mete.NotSpent, Err: fmt.Errorf("%w: no route", store.ErrUnavailable)}
	case lossy:
		if err := f(inner); err != nil {
			return err
		}
		fallthrough
	case silent:
		return &mete.StoreError{Op: op, Store: "wire", Spent: mete.MaybeSpent, Err: context.DeadlineExceeded}
	}
	return f(inner)
}

// A node is one of several processes that share a store.
type node struct {
	*testing.T
	*mete.Limiter
	line *wire
}

// A cluster is a store with its clock and nodes.
type cluster struct {
	*testing.T
	clock *storetest.Clock
	store *storetest.Model
	nodes []*node
}

// start returns a cluster of n nodes with one policy.
func start(t *testing.T, n int, rules string) *cluster {
	t.Helper()
	return startDenying(t, n, rules, 0)
}

// startDenying returns a cluster with nodes that deny from memory for denyFor.
func startDenying(t *testing.T, n int, rules string, denyFor time.Duration) *cluster {
	t.Helper()
	c := &cluster{T: t, clock: storetest.NewClock()}
	c.store = storetest.NewModel(c.clock.Now)
	for range n {
		l := &wire{Store: c.store}
		limiter, err := mete.New(l, load(t, `{"rules": [`+rules+`]}`), mete.Config{
			Local:   storetest.NewModel(c.clock.Now),
			Nodes:   func() int { return n },
			Now:     c.clock.Now,
			DenyFor: denyFor,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.nodes = append(c.nodes, &node{t, limiter, l})
	}
	return c
}

// cut breaks every wire.
func (c *cluster) cut(f fault) {
	for _, n := range c.nodes {
		n.line.cut(f)
	}
}

func (c *cluster) advance(seconds float64) { c.clock.Advance(int64(seconds * 1e6)) }

// missing returns the deficit of the store's bucket.
func (c *cluster) missing(key string, limit bucket.Limit) bucket.Tokens {
	snaps, _, err := c.store.Take(c.Context(), nil, []store.Charge{{Key: key, Limit: limit}}, mete.Mode{DryRun: true})
	if err != nil {
		c.Fatal(err)
	}
	return snaps[0].Missing()
}

// take takes tokens and returns the decision.
func (n *node) take(tokens int) mete.Decision {
	n.Helper()
	d, err := n.Take(n.Context(), mete.Request{Cost: mete.Tokens(tokens)})
	if err != nil {
		n.Fatal(err)
	}
	return d
}

// drain takes single tokens until a denial, and returns their number.
func (n *node) drain() (got int) {
	n.Helper()
	for n.take(1).Allowed {
		if got++; got > 10_000 {
			n.Fatal("nothing limits")
		}
	}
	return got
}

// localRule is a rule with one shared bucket of 10 tokens, refilled at one per second.
const localRule = `{"name": "all", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rps": 1, "burst": 10}}`
