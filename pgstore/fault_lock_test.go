// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// hold takes from a bucket in a transaction, which release rolls back.
func hold(t *testing.T, p *place, charges []mete.Charge) (release func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err == nil {
		_, _, err = p.store.TakeTx(ctx, tx, nil, charges, mete.Mode{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// Who takes in a transaction keeps others from these buckets until it ends, and from
// no other ones: not even those that are taken together with them. Who is kept knows
// that nothing was spent.
func TestFault_LockHeld(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"bucket": true, "new bucket": false} {
		t.Run(name, func(t *testing.T) { heldFor(t, there) })
	}
}

func heldFor(t *testing.T, there bool) {
	faulttest.Alone(t)
	const key, lasts, settled = "z:ample", 2 * time.Second, 600 * time.Millisecond
	p := at(t, proctest.StartPostgres(t).URL(), "", pgstore.Config{})
	free := plainAndOthers()
	tr := startTraffic(t, p, free)
	tr.GoesOn(20)
	charges, first := chargesOf(key), int64(0)
	if there {
		if _, err := p.take(charges, mete.Mode{}); err != nil {
			t.Fatal(err)
		}
		first = 1
	}
	release := hold(t, p, charges)
	began := time.Now()
	others := tr.Beside([]*faulttest.Taker{{Charges: charges}, {Charges: chargesOf("vast", key)},
		{Charges: charges, IDs: true}, {Charges: charges, Patient: true}})
	most := int64(0)
	for time.Since(began) < lasts {
		pass(100 * time.Millisecond)
		n, err := strconv.ParseInt(p.must("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mete'"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	if pool := int64(p.pool.Config().MaxConns); most > pool {
		t.Errorf("%d connections, where the pool has %d", most, pool)
	}
	for _, k := range others.Takers {
		if n := k.Answered(); n > 0 {
			t.Errorf("%d takes of %q were answered while it was locked", n, key)
		}
	}
	release()
	ended := time.Now()
	others.GoesOn(10)
	tr.GoesOn(10)
	others.Stop()
	tr.Stop()

	late, all := 0, 0 // of those who have nothing to do with it, but for its first moments
	for _, k := range free {
		for _, c := range k.Calls {
			if c.Began.Before(began.Add(settled)) || c.Ended.After(ended) {
				continue
			}
			if all++; c.Err != nil {
				late++
			}
		}
	}
	if late*4 > all || all < 100 { // a machine that does other things too is late by itself
		t.Errorf("%d of %d takes of other buckets failed", late, all)
	}
	not, maybe, example := others.Failures()
	t.Logf("failed: %d not spent, %d maybe spent, such as %v; of other buckets %d of %d", not, maybe, example, late, all)
	tr.Prompt()
	tr.Takers = append(free, others.Takers...)
	tr.Bounded(0)
	tr.Conserved()
	admitted, doubtful := tr.Events(key)
	least := first + int64(len(admitted))
	if got := p.charged(key); got < least || got > least+doubtful {
		t.Errorf("%d takes are missing from %q, want %d to %d", got, key, least, least+doubtful)
	}
}
