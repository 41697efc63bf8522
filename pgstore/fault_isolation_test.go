// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// outwaited reports whether a NotSpent error is a lock timeout: 64 calls compete for three rows on a busy
// machine.
func outwaited(err error) bool {
	const lockNotAvailable = "55P03"
	failed, ok := errors.AsType[*pgconn.PgError](err)
	return mete.Spent(err) == mete.NotSpent && (ok && failed.Code == lockNotAvailable || errors.Is(err, store.ErrOverloaded))
}

// TestFault_Isolation uses a higher default isolation level, where PostgreSQL rolls back statements because of
// concurrent ones. Callers do not notice, even with 64 concurrent calls on few buckets.
func TestFault_Isolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			faulttest.RunParallel(t)
			const stores, callers, takes = 16, 4, 12
			s := proctest.StartPostgres(t, "default_transaction_isolation="+level)
			var sets [][]store.Charge
			for _, keys := range [][]string{{"ample"}, {"ample", "ample:2"}, {"ample:2"}, {"ample", "ample:2", "ample:3"}} {
				sets = append(sets, chargesOf(keys...))
			}
			var all sync.WaitGroup
			places := make([]*place, stores)
			for i := range places {
				p := at(t, s.URL(), "", pgstore.Config{Timeout: faulttest.Patience})
				places[i] = p
				for first := range callers {
					all.Go(func() {
						for n := range takes {
							charges := sets[(first+n)%len(sets)]
							_, allowed, err := p.store.Take(t.Context(), nil, charges, mete.Mode{})
							for busy := 0; err != nil && outwaited(err) && busy < 20; busy++ {
								_, allowed, err = p.store.Take(t.Context(), nil, charges, mete.Mode{})
							}
							if err != nil || !allowed {
								t.Errorf("take %d of %d buckets: %v, %v", n, len(charges), allowed, err)
								return
							}
						}
					})
				}
			}
			all.Wait()
			const each = stores * callers * takes / 4
			for key, times := range map[string]int64{"ample": 3, "ample:2": 3, "ample:3": 1} {
				if got := places[0].charged(key); got != times*each {
					t.Errorf("%d takes are missing from %q, want %d", got, key, times*each)
				}
			}
		})
	}
}
