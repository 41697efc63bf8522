// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A message is a call of the store on its way.
type message struct {
	node   *node
	client int    // of the call, 0 for a call of the node itself
	key    string // of a call of the node itself
	number int    // of the client's calls at the node

	run      func() error // executes the call in the store, and fills the answer
	err      error        // of run
	executed bool
	joins    bool // the client's transaction
	orphan   bool // the caller has given up
	reply    chan error
}

var _ store.Holder = (*wire)(nil) // otherwise holds would bypass the wire

// A wire is a node's connection to the store.
type wire struct {
	node  *node
	inner store.Store
}

func (w *wire) Unwrap() mete.Store { return w.inner }

// clientKey is the key of the client's number in a context.
type clientKey struct{}

// answerWithin is how long a node waits for an answer without a deadline.
const answerWithin = 2 * time.Second

// call sends run to the store, and waits for the answer. A lost answer is an error after the deadline, as with a real
// connection.
func (w *wire) call(ctx context.Context, op string, within time.Duration, run func() error) error {
	return w.send(ctx, &message{run: run}, op, within)
}

func (w *wire) send(ctx context.Context, m *message, op string, within time.Duration) error {
	s := w.node.sim
	client, _ := ctx.Value(clientKey{}).(int)
	s.mu.Lock()
	if w.node.dead || w.node.cut {
		s.mu.Unlock()
		return &mete.StoreError{Op: op, Store: "simulated", Spent: mete.NotSpent, Err: fmt.Errorf("%w: no route", store.ErrUnavailable)}
	}
	caller := payment{client, m.key}
	w.node.calls[caller]++
	m.joins = s.journal != nil && w.InTransaction(ctx)
	m.node, m.client, m.number, m.reply = w.node, client, w.node.calls[caller], make(chan error, 1)
	at, _ := slices.BinarySearchFunc(s.messages, m, compareMessages)
	s.messages = slices.Insert(s.messages, at, m)
	s.mu.Unlock()

	timer := time.NewTimer(cmp.Or(within, answerWithin))
	defer timer.Stop()
	select {
	case err := <-m.reply:
		return err
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.orphan = true
	if m.executed {
		s.remove(m)
	}
	return lost(op)
}

// compareMessages orders messages by their clients, so that the order does not depend on which goroutine came first.
func compareMessages(a, b *message) int {
	return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.node.number, b.node.number), cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
}

func lost(op string) error {
	return &mete.StoreError{Op: op, Store: "simulated", Spent: mete.MaybeSpent, Err: context.DeadlineExceeded}
}

func (s *simulation) remove(m *message) {
	if at := slices.Index(s.messages, m); at >= 0 {
		s.messages = slices.Delete(s.messages, at, at+1)
	}
}

// canExecute reports whether the message is executed, or can be.
func (s *simulation) canExecute(m *message) bool {
	return m.executed || s.journal == nil || !s.journal.locked(m)
}

// execute runs a message in the store.
func (s *simulation) execute(m *message) {
	if m.executed {
		return
	}
	m.executed = true
	if s.journal != nil {
		s.journal.begin(m)
	}
	m.err = m.run()
	if m.orphan {
		s.remove(m)
	}
}

// answer sends the answer of an executed message.
func (s *simulation) answer(m *message, err error) {
	s.remove(m)
	if !m.orphan {
		m.reply <- err
	}
}

// Take implements [store.Store].
func (w *wire) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	charges = slices.Clone(charges) // the message can outlive the call
	client, _ := ctx.Value(clientKey{}).(int)
	if w.node.borrower != nil && len(charges) == 1 && charges[0].Leased {
		return w.takeLeased(ctx, dst, charges[0], mode)
	}
	var snaps []bucket.Snapshot
	var allowed bool
	m := &message{}
	if w.node.sim.plan.world.isOutage() && mode.MaxWait == bucket.Forced {
		client, m.key = 0, charges[0].Key // it charges local costs of the node, whatever the context is
	}
	s := w.node.sim
	m.run = func() (err error) {
		return s.unchanged(mode.ID, charges, func() (repeated bool, err error) {
			snaps, allowed, err = w.inner.Take(context.Background(), nil, charges, mode)
			if err == nil {
				s.record(m, func() { repeated = s.ledger.take(client, charges, snaps, allowed, mode) })
			}
			return repeated, err
		})
	}
	err := w.send(ctx, m, "take", mode.Within)
	if err != nil {
		return dst, false, err
	}
	return append(dst, snaps...), allowed, nil
}

// Refund implements [store.Store].
func (w *wire) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	refunds = slices.Clone(refunds)
	charges := make([]store.Charge, len(refunds))
	for i := range refunds {
		charges[i] = refunds[i].Charge
	}
	client, _ := ctx.Value(clientKey{}).(int)
	return w.call(ctx, "refund", 0, func() error {
		return w.node.sim.unchanged(id, charges, func() (repeated bool, err error) {
			if err = w.inner.Refund(context.Background(), refunds, id); err == nil {
				repeated = w.node.sim.ledger.refund(client, refunds, id)
			}
			return repeated, err
		})
	})
}

// Reset implements [store.Store].
func (w *wire) Reset(ctx context.Context, keys []string) error {
	keys = slices.Clone(keys)
	return w.call(ctx, "reset", 0, func() error {
		err := w.inner.Reset(context.Background(), keys)
		if err == nil {
			w.node.sim.ledger.reset(keys)
		}
		return err
	})
}

var errNoHolds = errors.New("the simulated store has no holds")

func (w *wire) holder() (store.Holder, error) {
	if h, ok := store.As[store.Holder](w.inner); ok {
		return h, nil
	}
	return nil, errNoHolds
}

// Hold implements [store.Holder].
func (w *wire) Hold(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode, h store.Hold) ([]bucket.Snapshot, string, error) {
	charges, h.Terms = slices.Clone(charges), slices.Clone(h.Terms)
	client, _ := ctx.Value(clientKey{}).(int)
	var snaps []bucket.Snapshot
	var id string
	err := w.call(ctx, "hold", mode.Within, func() error {
		inner, err := w.holder()
		if err != nil {
			return err
		}
		snaps, id, err = inner.Hold(context.Background(), nil, charges, mode, h)
		if err == nil && id != "" {
			w.node.sim.ledger.hold(client, id, charges, snaps, mode, h)
		}
		return err
	})
	if err != nil {
		return dst, "", err
	}
	return append(dst, snaps...), id, nil
}

// Settle implements [store.Holder].
func (w *wire) Settle(ctx context.Context, id string, actual ...bucket.Tokens) (status store.HoldStatus, err error) {
	err = w.call(ctx, "settle", 0, func() error {
		inner, err := w.holder()
		if err != nil {
			return err
		}
		status, err = inner.Settle(context.Background(), id, actual...)
		if err == nil {
			w.node.sim.ledger.settle(id, actual[0], status)
		}
		return err
	})
	return status, err
}

// Renew implements [store.Holder].
func (w *wire) Renew(ctx context.Context, id string, ttl time.Duration) (status store.HoldStatus, err error) {
	err = w.call(ctx, "renew", 0, func() error {
		inner, err := w.holder()
		if err != nil {
			return err
		}
		status, err = inner.Renew(context.Background(), id, ttl)
		if err == nil {
			w.node.sim.ledger.renew(id, ttl, status)
		}
		return err
	})
	return status, err
}
