// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// TestPaths_Settle makes takes that await their settlement, and cancellations, by the server's clock: alone, and together with
// another. It repeats each in the function take, for another key and at the same instant. Answers and rows must be equal.
func TestPaths_Settle(t *testing.T) {
	t.Parallel()
	a := newAgreement(t, 200)
	a.store.config.Now = nil
	var open [2][]bucket.Taken // takes of a limit
	histories, canceled := 0, 0
	enough := func() bool { return a.taken >= 150 && a.denied >= 10 && canceled >= 100 && histories >= 200 }
	for step := 0; step < 800 || step < 8000 && !enough(); step++ { // on a slow machine, buckets refill between steps
		k := a.r.IntN(len(open))
		key, l := string(rune('a'+k)), a.limits[2*k]
		var x, y *ask
		switch at := a.r.IntN(len(open[k]) + 1); {
		case at < len(open[k]) && a.r.IntN(2) == 0:
			taken := open[k][at]
			open[k] = append(open[k][:at], open[k][at+1:]...)
			refund := mete.Refund{Charge: store.Charge{Key: key, Limit: l, Cost: 1 + bucket.Tokens(a.r.Int64N(int64(taken.Cost)))}, Taken: taken}
			x = a.store.newRefund([]mete.Refund{refund}, "")
			refund.Key += "2"
			y = a.store.newRefund([]mete.Refund{refund}, "")
		default:
			c := store.Charge{Key: key, Limit: l, Cost: 1 + bucket.Tokens(a.r.Int64N(int64(l.Capacity()))>>oneOf(a.r, 1, 4, 6, 7)),
				Await: time.Duration(oneOf(a.r, 0, 1, 1+a.r.Int64N(20), 1+a.r.Int64N(20_000))) * time.Microsecond}
			if step >= 800 && step%2 == 0 {
				c.Cost, c.Await = bucket.Tokens(l.Capacity()), 0
			}
			x = a.store.newAsk([]store.Charge{c}, mete.Mode{})
			c.Key += "2"
			y = a.store.newAsk([]store.Charge{c}, mete.Mode{})
		}
		before := bucket.Instant(a.serverTime())
		a.settleBy(x, a.r.IntN(3) > 0)
		row, asOf, stays := a.rowText(key)
		instants := []bucket.Instant{max(asOf, before), bucket.Instant(a.serverTime())} // the instant of a row that did not change is unknown
		was, _, _ := a.rowText(key + "2")
		other := ""
		for i, now := range instants {
			if i > 0 {
				a.restore(key + "2")
			}
			a.save(key + "2")
			a.mixedAt(y, now)
			if other, _, _ = a.rowText(key + "2"); other == row {
				break
			}
		}
		if !stays {
			a.Fatalf("%s goes before it is full", row)
		}
		if other != row || x.allowed != y.allowed {
			a.Fatalf("%+v, refund %v of %+v, of the row\n%s\nleft %v\n%s\nwant %v\n%s", x.charges, x.refund, x.taken, was, x.allowed, row, y.allowed, other)
		}
		switch {
		case x.refund && row != was:
			canceled++
		case !x.refund && x.allowed:
			if xt, yt := x.snaps[0].Taken(), y.snaps[0].Taken(); xt != yt {
				a.Fatalf("took %+v, want %+v", xt, yt)
			}
			open[k] = append(open[k], x.snaps[0].Taken())
			a.taken++
		case !x.refund:
			a.denied++
		}
		if len(row) > 0 && row[len(row)-1] == '}' {
			histories++
		}
	}
	if !enough() {
		t.Errorf("%d took, %d were denied, %d were canceled, %d had a history: want more of each", a.taken, a.denied, canceled, histories)
	}
}

// settleBy runs x by the server's clock, alone or with a take of another key.
func (a *agreement) settleBy(x *ask, alone bool) {
	a.Helper()
	b := newBatch(a.store)
	b.Reset()
	b.Add(x)
	if !alone {
		b.Add(a.store.newAsk([]store.Charge{{Key: "other", Limit: a.limits[1], Cost: 1, Await: time.Millisecond}}, mete.Mode{}))
	}
	a.runBatch(b)
	if x.retryMixed && x.allowed {
		a.again++
	}
}

// mixedAt runs y in the function take at an instant.
func (a *agreement) mixedAt(y *ask, now bucket.Instant) {
	a.Helper()
	b := newBatch(a.store)
	b.Reset()
	b.Add(y)
	b.ungroup()
	b.clock = int64(now)
	a.runBatch(b)
}

func (a *agreement) runBatch(b *batch) {
	a.Helper()
	conn, err := a.pool.Acquire(a.Context())
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Release()
	b.setLockTimeout(time.Minute)
	a.store.denying.Store(a.r.IntN(2) == 0)
	if err := b.runOn(a.Context(), conn.Conn()); err != nil {
		a.Fatal(err)
	}
	for _, x := range b.asks {
		if x.Err != nil {
			a.Fatal(x.Err)
		}
	}
}

// rowText returns the accounts of a row, without the IDs of histories, which name transactions. It also returns the instant of
// the first account, and whether the row stays until it is full.
func (a *agreement) rowText(key string) (text string, asOf bucket.Instant, stays bool) {
	a.Helper()
	stays = true
	rows, err := a.pool.Query(a.Context(), `SELECT ROW(b.lim, b.spent, b.as_of, coalesce(b.prev, 0), b.log)::text || coalesce((SELECT array_agg(
		ROW(lim, spent, as_of, prev, log[2:]))::text FROM unnest(b.others) AS o (lim, spent, as_of, prev, log)), ''), b.as_of,
		b.full_at >= `+a.store.config.Schema+`.due(ARRAY[ROW(b.lim, b.spent, b.as_of, coalesce(b.prev, 0), b.log)::`+a.store.config.Schema+`.account] || b.others, b.key) FROM `+a.table()+` b
		WHERE b.key = convert_to('p:' || $1, 'UTF8')`, key)
	if err != nil {
		a.Fatal(err)
	}
	defer rows.Close()
	if rows.Next() {
		if err := rows.Scan(&text, &asOf, &stays); err != nil {
			a.Fatal(err)
		}
	}
	return text, asOf, stays
}

// save copies a row, and restore puts the copy back.
func (a *agreement) save(key string)    { a.copyRow(key, "saved") }
func (a *agreement) restore(key string) { a.copyRow("saved", key) }

func (a *agreement) copyRow(from, to string) {
	a.Helper()
	table := a.table()
	if _, err := a.pool.Exec(a.Context(), "DELETE FROM "+table+" WHERE key = $1", []byte("p:"+to)); err != nil {
		a.Fatal(err)
	}
	if _, err := a.pool.Exec(a.Context(), "INSERT INTO "+table+" (key, lim, spent, as_of, full_at, prev, log, others) SELECT $2, lim, spent, as_of, full_at, prev, log, others FROM "+
		table+" WHERE key = $1", []byte("p:"+from), []byte("p:"+to)); err != nil {
		a.Fatal(err)
	}
}

// TestSettleCall_Fails lets a call of take_and_settle fail. The function take must not repeat its asks, because the failed call
// may have charged them.
func TestSettleCall_Fails(t *testing.T) {
	t.Parallel()
	a := newAgreement(t, 201)
	a.store.statements.takeAndSettle.sql = "SELECT 1 / 0"
	a.store.statements.takeAndSettle.name = ""
	a.store.statements.takeAndSettle.oids = nil
	b := newBatch(a.store)
	b.Reset()
	b.setLockTimeout(time.Minute)
	b.Add(a.store.newAsk([]store.Charge{{Key: "a", Limit: a.limits[0], Cost: 1, Await: time.Second}}, mete.Mode{}))
	conn, err := a.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := b.runOn(t.Context(), conn.Conn()); err == nil || b.asks[0].Err == nil {
		t.Errorf("the call succeeded: %v, %v", err, b.asks[0].Err)
	}
	if row, _, _ := a.rowText("a"); row != "" {
		t.Errorf("the failed take left %s", row)
	}
}
