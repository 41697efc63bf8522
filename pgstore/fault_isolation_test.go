// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// Where a database's transactions are isolated more than they are by default,
// PostgreSQL undoes statements for the sake of others. Callers do not learn of it,
// however many write to few buckets: 64 calls at a time.
func TestFault_Isolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			alone(t)
			const stores, writers, takes = 16, 4, 12
			s := proctest.StartPostgres(t, "default_transaction_isolation="+level)
			var all sync.WaitGroup
			places := make([]*place, stores)
			for i := range places {
				places[i] = at(t, s.URL(), "", pgstore.Config{})
			}
			sets := [][]mete.Charge{slowCharges("hot"), slowCharges("a", "hot"), slowCharges("a"), slowCharges("b", "hot", "z")}
			var admitted [4]atomic.Int64
			for _, p := range places {
				for w := range writers {
					all.Go(func() {
						for n := range takes {
							set := (w + n) % len(sets)
							mode := mete.Mode{}
							charges := append([]mete.Charge(nil), sets[set]...)
							for i := range charges {
								charges[i].Limit = vastLimit
							}
							_, allowed, err := p.store.Take(t.Context(), nil, charges, mode)
							if err != nil || !allowed {
								t.Errorf("take %d of %v: %v, %v", n, set, allowed, err)
								return
							}
							admitted[set].Add(1)
						}
					})
				}
			}
			all.Wait()
			t.Log(admitted[0].Load(), admitted[1].Load(), admitted[2].Load(), admitted[3].Load())
		})
	}
}

var _ = context.Background
var _ = errors.New
var _ pgx.Tx
var _ pgconn.PgError
