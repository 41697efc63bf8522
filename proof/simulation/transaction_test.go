// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"slices"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// A journal is a memstore with transactions. A rollback builds a new memstore, and repeats all operations except those
// of the transaction, each at its instant. During a transaction, no other message is executed.
type journal struct {
	sim        *simulation
	made       bucket.Instant // the store's first instant
	operations []operation
	replaying  *operation // nil at all other times

	client  int      // whose transaction has begun; 0 is none
	mark    int      // the number of operations before it
	pending []func() // records the operations of the transaction in the ledger
}

type operation struct {
	at bucket.Instant
	do func(*memstore.Store) error
}

// now is the clock of the store.
func (j *journal) now() bucket.Instant {
	if j.replaying != nil {
		return j.replaying.at
	}
	return j.sim.now()
}

// do executes an operation.
func (j *journal) do(op func(*memstore.Store) error) error {
	j.operations = append(j.operations, operation{j.sim.now(), op})
	return op(j.sim.store)
}

// begin begins the transaction of a message, unless it has begun.
func (j *journal) begin(m *message) {
	if m.joins && j.client == 0 {
		j.client, j.mark = m.client, len(j.operations)
	}
}

// locked reports whether a message must wait until a transaction of another client has ended.
func (j *journal) locked(m *message) bool {
	return j.client != 0 && !(m.joins && m.client == j.client)
}

// record records an operation in the ledger, at once or when its transaction is committed.
func (s *simulation) record(m *message, f func()) {
	if m.joins {
		s.journal.pending = append(s.journal.pending, f)
		return
	}
	f()
}

// end ends the transaction of a client.
func (j *journal) end(client int, commit bool) {
	s := j.sim
	s.messages = slices.DeleteFunc(s.messages, func(m *message) bool { return m.joins && m.client == client })
	if j.client != client {
		return
	}
	pending := j.pending
	j.client, j.pending = 0, nil
	if commit {
		s.counts["committed"]++
		for _, f := range pending {
			f()
		}
		return
	}
	s.ledger.note("client %d rolls back", client)
	s.counts["rolled back"]++
	j.operations = slices.Delete(j.operations, j.mark, len(j.operations))
	defer func() { j.replaying = nil }()
	j.replaying = &operation{at: j.made}
	fresh, err := memstore.New(memstore.Config{Now: j.now})
	if err != nil {
		panic(err)
	}
	s.store = fresh
	for i := range j.operations {
		j.replaying = &j.operations[i]
		_ = j.replaying.do(fresh)
	}
}

// Unwrap returns the memstore, which has the secret of hash keys.
func (j *journal) Unwrap() mete.Store { return j.sim.store }

// Take implements [store.Store].
func (j *journal) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) (snaps []bucket.Snapshot, allowed bool, err error) {
	err = j.do(func(s *memstore.Store) (err error) {
		snaps, allowed, err = s.Take(ctx, dst, charges, mode)
		return err
	})
	return snaps, allowed, err
}

// Refund implements [store.Store].
func (j *journal) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	return j.do(func(s *memstore.Store) error { return s.Refund(ctx, refunds, id) })
}

// Reset implements [store.Store].
func (j *journal) Reset(ctx context.Context, keys []string) error {
	return j.do(func(s *memstore.Store) error { return s.Reset(ctx, keys) })
}

// joins is the key of a context with a transaction.
type joins struct{}

// InTransaction implements [store.Transactional].
func (w *wire) InTransaction(ctx context.Context) bool { return ctx.Value(joins{}) != nil }

// transact takes in a transaction, and commits or rolls back. It returns false after a rollback.
func (c *client) transact(ctx context.Context, n *node, commit bool) (mete.Decision, bool, error) {
	d, err := n.limiter.Take(context.WithValue(ctx, joins{}, true), c.request)
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	commit = commit && err == nil && !d.Degraded && !n.dead // a database aborts a transaction whose statement has failed
	c.sim.journal.end(c.number, commit)
	return d, commit, err
}
