// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// hold takes from a bucket within a transaction, and returns what ends it.
func hold(t *testing.T, p *place, key string, end string) (release func()) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.store.TakeTx(ctx, tx, nil, chargesOf(key), mete.Mode{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(ctx, end); err != nil {
			t.Error(err)
		}
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

// Who takes in a transaction keeps others from that bucket until it ends, and from
// no other one.
func TestFault_LockHeld(t *testing.T) {
	alone(t)
	const held = 2 * time.Second
	s := proctest.StartPostgres(t)
	p := at(t, s.URL(), "", pgstore.Config{})
	takers := plainAndOthers()
	blocked := []*taker{{charges: chargesOf("vast:held")}, {charges: chargesOf("vast", "vast:held")}, {charges: chargesOf("vast:held"), ids: true}}
	tr := startTraffic(t, p, append(takers, blocked...))
	tr.goesOn(20)
	release := hold(t, p, "vast:held", "ROLLBACK")
	answered := func() (n int64) {
		for _, k := range blocked {
			n += k.answered.Load()
		}
		return n
	}
	before, most := answered(), 0
	for began := time.Now(); time.Since(began) < held; {
		pass(100 * time.Millisecond)
		var n int
		if _, err := fmt.Sscan(p.must("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mete'"), &n); err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	if got := answered() - before; got > int64(len(blocked)) {
		t.Errorf("%d takes of a bucket that is locked were answered", got)
	}
	free := 0
	for _, k := range takers {
		for _, c := range k.calls {
			_ = c
			free++
		}
	}
	release()
	tr.goesOn(20)
	tr.stop()
	late, all := 0, 0
	for _, k := range takers {
		for _, c := range k.calls {
			if all++; c.err != nil {
				late++
			}
		}
	}
	t.Logf("%d connections at most, %d of %d takes of other buckets failed", most, late, all)
	if late*100 > all {
		t.Errorf("%d of %d takes of other buckets failed", late, all)
	}
	if limit := int(p.pool.Config().MaxConns); most > 2*limit {
		t.Errorf("%d connections, want no more than the pool has, which are %d, and those that it has just closed", most, limit)
	}
	tr.prompt()
	tr.bounded(0)
	tr.conserved()
	_ = errors.New
}
