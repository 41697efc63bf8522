// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/pgstore"
)

// TestTake_SlowCallsOfOthers has stores compete for a bucket on a slow server: each call locks it for longer than
// others wait for a lock. They wait again, and all are answered.
func TestTake_SlowCallsOfOthers(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	schema := migrated(t, pool)
	run(t, pool, "CREATE FUNCTION "+schema+".slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.104); RETURN NEW; END'")
	run(t, pool, "CREATE TRIGGER slow BEFORE UPDATE ON "+schema+".bucket FOR EACH ROW EXECUTE FUNCTION "+schema+".slow()")
	l := tokens(t, 100, "1/1000h")
	var all sync.WaitGroup
	for i := range 3 {
		s := open(t, newPool(t), pgstore.Config{Schema: schema, Timeout: awhile, SweepEvery: -1, MaxInFlight: 1})
		for g := range 3 {
			charges := of(l, 1, "k")
			if g%3 == 2 {
				charges = of(l, 1, fmt.Sprint("a", i), "k")
			}
			all.Go(func() {
				for range 4 {
					if _, allowed, err := s.Take(context.Background(), nil, charges, mete.Mode{}); err != nil || !allowed {
						t.Errorf("%d charges: allowed %v, %v", len(charges), allowed, err)
					}
				}
			})
		}
	}
	all.Wait()
	holds(t, open(t, pool, pgstore.Config{Schema: schema, SweepEvery: -1, Timeout: awhile}), "k", l, (100-3*3*4)*bucket.Token)
}
