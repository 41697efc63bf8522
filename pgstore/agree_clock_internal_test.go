// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// TestPaths_AgreeByTheServersClock takes by every way one at a time: what is in the row
// then is what package bucket makes of what was there, at the instant that the row
// says, and the row goes when its bucket is full.
func TestPaths_AgreeByTheServersClock(t *testing.T) {
	t.Parallel()
	a := newAgreement(t, 100)
	a.store.config.Now = nil
	for i := range 600 {
		before := bucket.Instant(a.serverTime())
		a.clock.Set(before) // by which states are planted
		if i%3 == 0 {
			a.plant()
		}
		k := a.r.IntN(8)
		key, l := fmt.Sprint("k", k), a.limits[k%len(a.limits)]
		if a.r.IntN(12) == 0 {
			l = a.limits[a.r.IntN(len(a.limits))]
		}
		c := mete.Charge{Key: key, Limit: l, Cost: a.cost(l, a.rows[key])}
		snap := a.takeBySomeWay(c)
		a.compareAlone(c, snap, before, bucket.Instant(a.serverTime()))
	}
	if a.taken < 150 || a.denied < 100 {
		t.Errorf("%d took, %d were denied: want more of each", a.taken, a.denied)
	}
}

func (a *agreement) takeBySomeWay(c mete.Charge) bucket.Snapshot {
	a.Helper()
	b := newBatch(a.store)
	b.Reset()
	b.Add(a.store.newAsk([]mete.Charge{c}, mete.Mode{}))
	way := a.r.IntN(4)
	a.store.denying.Store(a.r.IntN(2) == 0)
	a.store.unprepared.Store(way != 0) // else it is a statement of its own
	switch way {
	case 2: // together with another
		b.Add(a.store.newAsk([]mete.Charge{{Key: "other", Limit: a.limits[1], Cost: 1}}, mete.Mode{}))
	case 3:
		b.ungroup()
	}
	conn, err := a.pool.Acquire(a.Context())
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Release()
	b.setPatience(time.Minute)
	if err := b.runOn(a.Context(), conn.Conn()); err != nil {
		a.Fatal(err)
	}
	x := b.asks[0]
	if x.Err != nil || len(x.snaps) != 1 || x.snaps[0].Allowed != x.allowed {
		a.Fatalf("way %d, %+v: %+v, allowed %v, %v", way, c, x.snaps, x.allowed, x.Err)
	}
	return x.snaps[0]
}

// ungroup has all asks go the general way.
func (b *batch) ungroup() {
	clear(b.groups)
	b.groups = b.groups[:0]
	for i := range b.places {
		b.places[i] = -1
	}
}

func (a *agreement) compareAlone(c mete.Charge, snap bucket.Snapshot, before, after bucket.Instant) {
	a.Helper()
	old := a.rows[c.Key]
	unchanged, soonest, _ := take(old, &c.Limit, before, c.Cost)
	_, latest, _ := take(old, &c.Limit, after, c.Cost)
	if soonest.Allowed && !snap.Allowed || snap.Allowed && !latest.Allowed {
		a.Fatalf("%+v of %+v: allowed %v, want %v to %v", c, old, snap.Allowed, soonest.Allowed, latest.Allowed)
	}
	rows, due := a.read(c.Key)
	row, fullAt := rows[c.Key], due[c.Key]
	if !snap.Allowed {
		a.denied++
		if least, most := latest.RetryAfter, soonest.RetryAfter; snap.RetryAfter < least || snap.RetryAfter > most {
			a.Errorf("%+v of %+v: retry after %v, want %v to %v", c, old, snap.RetryAfter, least, most)
		}
		replaces := len(row) == len(old) && len(row) > 0 && row[0].Limit.Same(&c.Limit) &&
			!slices.ContainsFunc(old, func(x bucket.Account) bool { return x.Limit.Same(&c.Limit) })
		if replaces || len(unchanged) > len(old) || len(row) > len(old) { // the limit's account begins
			if len(row) > 0 {
				unchanged, _, _ = take(old, &c.Limit, row[0].State.AsOf, c.Cost)
			}
		} else {
			unchanged = old
		}
		if !reflect.DeepEqual(row, unchanged) {
			a.Fatalf("%+v of %+v was denied, and left %+v, want %+v", c, old, row, unchanged)
		}
		a.rows[c.Key] = row
		return
	}
	a.taken++
	if len(row) == 0 {
		a.Fatalf("%+v of %+v: no row is left", c, old)
	}
	at := row[0].State.AsOf
	want, full, _ := take(old, &c.Limit, at, c.Cost)
	latestOld := bucket.Instant(0)
	for i := range old {
		latestOld = max(latestOld, old[i].State.AsOf)
	}
	if !reflect.DeepEqual(row, want) || at < before || at > max(after, latestOld) {
		a.Fatalf("%+v of %+v between %d and %d: left %+v, want %+v", c, old, before, after, row, want)
	}
	// The answer is about the state that was left.
	answers := []time.Duration{snap.FullAfter(), full.FullAfter() + time.Duration(at-before)*time.Microsecond}
	if !slices.IsSorted(answers) || snap.Remaining() != full.Remaining() {
		a.Errorf("%+v of %+v: %v, full after %v; left %v, full after %v", c, old, snap.Remaining(), answers[0], full.Remaining(), answers[1])
	}
	const most = 1 << 50
	if wait := row.FullAfter(at).Microseconds(); wait < most && (fullAt < int64(at)+wait || fullAt > int64(max(at, after))+wait+1) {
		a.Errorf("%+v of %+v: goes %d µs after it is full", c, old, fullAt-int64(at)-wait)
	}
	a.rows[c.Key] = row
}
