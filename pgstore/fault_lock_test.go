// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// hold takes from a bucket in a transaction, which release rolls back.
func hold(t *testing.T, p *place, charges []store.Charge) (release func()) {
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

// TestFault_LockHeld takes in a transaction. Takes from these buckets wait until it ends, and fail as NotSpent.
// Takes from other buckets do not wait, even in the same call.
func TestFault_LockHeld(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"bucket": true, "new bucket": false} {
		t.Run(name, func(t *testing.T) { heldFor(t, there) })
	}
}

// lateOf counts the calls in a period, and the failed ones.
func lateOf(takers []*faulttest.Taker, from, to time.Time) (late, all int) {
	for _, k := range takers {
		for _, c := range k.Calls {
			if c.Began.Before(from) || c.Ended.After(to) {
				continue
			}
			if all++; c.Err != nil {
				late++
			}
		}
	}
	return late, all
}

func heldFor(t *testing.T, there bool) {
	faulttest.RunParallel(t)
	const key = "z:ample"
	p := at(t, proctest.StartPostgres(t).URL(), "", pgstore.Config{})
	free := plainAndOthers()
	tr := startTraffic(t, p, free)
	tr.WaitAnswers(20)
	// The control uses other tables, and shows the delays of the machine itself.
	control := startTraffic(t, at(t, p.url, p.url+"&application_name=control", pgstore.Config{Durable: true}), plainAndOthers())
	charges, first := chargesOf(key), int64(0)
	if there {
		if _, err := p.take(charges, mete.Mode{}); err != nil {
			t.Fatal(err)
		}
		first = 1
	}
	release := hold(t, p, charges)
	others := tr.AddTakers([]*faulttest.Taker{{Charges: charges}, {Charges: chargesOf("vast", key)},
		{Charges: charges, IDs: true}, {Charges: charges, Patient: true}})
	giveUp := others.Takers[:3]
	others.WaitCalls(6, giveUp...) // until the store knows that the bucket is held
	began := time.Now()
	others.WaitCalls(20, giveUp...)
	tr.WaitCalls(20)
	faulttest.Eventually(t, "there are no more connections than the pool has", func() error { // except calls that are about to end
		n, err := strconv.ParseInt(p.must("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mete'"), 10, 64)
		if pool := int64(p.pool.Config().MaxConns); err == nil && n > pool {
			err = fmt.Errorf("%d connections, where the pool has %d", n, pool)
		}
		return err
	})
	for _, k := range others.Takers {
		if n := k.Answered(); n > 0 {
			t.Errorf("%d takes of %q were answered while it was locked", n, key)
		}
	}
	tr.WaitAnswers(10) // none of them waits for the lock
	release()
	ended := time.Now()
	others.WaitAnswers(10)
	tr.WaitAnswers(10)
	others.Stop()
	control.Stop()
	tr.Stop()

	// Unrelated takes are late only at the start.
	late, all := lateOf(free, began, ended)
	byItself, controls := lateOf(control.Takers, began, ended)
	most := min(0.25+3*float64(byItself)/float64(max(controls, 1)), 0.9) // all of them would fail if they waited for the lock
	if float64(late) > most*float64(all) || all < 100 {
		t.Errorf("%d of %d takes of other buckets failed, and %d of %d of other tables", late, all, byItself, controls)
	}
	not, maybe, example := others.Failures()
	t.Logf("failed: %d not spent, %d maybe spent, such as %v; of other buckets %d of %d, of other tables %d of %d",
		not, maybe, example, late, all, byItself, controls)
	tr.CheckPrompt()
	tr.Takers = append(free, others.Takers...)
	tr.CheckBound(0)
	tr.CheckConserved()
	admitted, doubtful := tr.Events(key)
	least := first + int64(len(admitted))
	if got := p.charged(key); got < least || got > least+doubtful {
		t.Errorf("%d takes are missing from %q, want %d to %d", got, key, least, least+doubtful)
	}
}
