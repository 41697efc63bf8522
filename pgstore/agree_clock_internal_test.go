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
	"github.com/metehq/mete/store"
)

// TestPaths_AgreeByTheServersClock takes through each path. The row must then hold the result of package bucket
// for its previous content, at the row's instant. The row expires when its bucket is full.
func TestPaths_AgreeByTheServersClock(t *testing.T) {
	t.Parallel()
	a := newAgreement(t, 100)
	a.store.config.Now = nil
	for i := range 600 {
		before := bucket.Instant(a.serverTime())
		a.clock.Set(before) // states are planted relative to this instant
		if i%3 == 0 {
			a.plant()
		}
		k := a.r.IntN(8)
		key, l := fmt.Sprint("k", k), a.limits[k%len(a.limits)]
		if a.r.IntN(12) == 0 {
			l = a.limits[a.r.IntN(len(a.limits))]
		}
		c := store.Charge{Key: key, Limit: l, Cost: a.cost(l, a.rows[key])}
		snap := a.takeBy(a.r.IntN(allWays), c)
		a.compareAlone(c, snap, before, bucket.Instant(a.serverTime()))
	}
	t.Logf("%d took, %d were denied", a.taken, a.denied)
	if a.taken < 150 || a.denied < 100 {
		t.Errorf("%d took, %d were denied: want more of each", a.taken, a.denied)
	}
}

// allWays counts the paths of a take.
const allWays = 4

func (a *agreement) takeBy(way int, c store.Charge) bucket.Snapshot {
	a.Helper()
	b := newBatch(a.store)
	b.Reset()
	b.Add(a.store.newAsk([]store.Charge{c}, mete.Mode{}))
	a.store.denying.Store(a.r.IntN(2) == 0)
	a.store.unprepared.Store(way != 0) // else it is a separate statement
	switch way {
	case 2: // together with another take
		b.Add(a.store.newAsk([]store.Charge{{Key: "other", Limit: a.limits[1], Cost: 1}}, mete.Mode{}))
	case 3:
		b.ungroup()
	}
	conn, err := a.pool.Acquire(a.Context())
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Release()
	b.setLockTimeout(time.Minute)
	if err := b.runOn(a.Context(), conn.Conn()); err != nil {
		a.Fatal(err)
	}
	x := b.asks[0]
	if x.Err != nil || len(x.snaps) != 1 || x.snaps[0].Allowed != x.allowed {
		a.Fatalf("way %d, %+v: %+v, allowed %v, %v", way, c, x.snaps, x.allowed, x.Err)
	}
	return x.snaps[0]
}

// ungroup makes all asks use the second statement.
func (b *batch) ungroup() {
	clear(b.groups)
	b.groups = b.groups[:0]
	for i := range b.places {
		b.places[i] = -1
	}
}

func (a *agreement) compareAlone(c store.Charge, snap bucket.Snapshot, before, after bucket.Instant) {
	a.Helper()
	old := a.rows[c.Key]
	rows, due := a.read(c.Key)
	row, fullAt := rows[c.Key], due[c.Key]
	_, begins := old.StateFor(&c.Limit, before)
	if begins {
		// The account of a new version starts even if the take is denied. The account with the most spent tokens
		// depends on the instant, and a later instant can mean a longer wait.
		_, now := snap.Verdict()
		left, want, _ := take(old, &c.Limit, now, c.Cost)
		if now < before || now > after || !reflect.DeepEqual(row, left) || snap != want {
			a.Fatalf("%+v of %+v at %d, between %d and %d: left %+v and shows %+v, want %+v and %+v", c, old, now, before, after, row, snap, left, want)
		}
	} else {
		_, soonest, _ := take(old, &c.Limit, before, c.Cost)
		_, latest, _ := take(old, &c.Limit, after, c.Cost)
		if soonest.Allowed && !snap.Allowed || snap.Allowed && !latest.Allowed {
			a.Fatalf("%+v of %+v: allowed %v, want %v to %v", c, old, snap.Allowed, soonest.Allowed, latest.Allowed)
		}
		if least, most := latest.RetryAfter, soonest.RetryAfter; snap.RetryAfter < least || snap.RetryAfter > most {
			a.Errorf("%+v of %+v: retry after %v, want %v to %v", c, old, snap.RetryAfter, least, most)
		}
		if !snap.Allowed && !reflect.DeepEqual(row, old) {
			a.Fatalf("%+v of %+v was denied, and left %+v", c, old, row)
		}
	}
	if !snap.Allowed {
		a.denied++
		a.rows[c.Key] = row
		return
	}
	a.taken++
	if len(row) == 0 {
		a.Fatalf("%+v of %+v: no row is left", c, old)
	}
	at := row[0].State.AsOf
	if !begins {
		want, full, _ := take(old, &c.Limit, at, c.Cost)
		if !leaves(old, row, c, before, after) {
			a.Fatalf("%+v of %+v between %d and %d: left %+v, want %+v", c, old, before, after, row, want)
		}
		// The answer describes the state after the take.
		answers := []time.Duration{snap.FullAfter(), full.FullAfter() + time.Duration(at-before)*time.Microsecond}
		if !slices.IsSorted(answers) || snap.Remaining() != full.Remaining() {
			a.Errorf("%+v of %+v: %v, full after %v; left %v, full after %v", c, old, snap.Remaining(), answers[0], full.Remaining(), answers[1])
		}
	}
	const most = 1 << 50
	if wait := row.FullAfter(at).Microseconds(); wait < most && (fullAt < int64(at)+wait || fullAt > int64(max(at, after))+wait+1) {
		a.Errorf("%+v of %+v: goes %d µs after it is full", c, old, fullAt-int64(at)-wait)
	}
	a.rows[c.Key] = row
}

// leaves reports whether c leaves row of old at an instant from before to after. The row
// has that instant, unless an account of old is ahead of the clock.
func leaves(old, row bucket.Row, c store.Charge, before, after bucket.Instant) bool {
	if len(row) == 0 {
		return false
	}
	at, ahead := row[0].State.AsOf, false
	for i := range old {
		ahead = ahead || old[i].State.AsOf >= at
	}
	if !ahead {
		before, after = max(before, at), min(after, at)
	}
	for now := before; now <= after; now++ {
		if left, _, _ := take(old, &c.Limit, now, c.Cost); reflect.DeepEqual(row, left) {
			return true
		}
	}
	return false
}

// TestPaths_DenialOfAFourthVersion denies a take of a fourth version, which replaces the third. The others are
// full, so the row drops them and has fewer accounts.
func TestPaths_DenialOfAFourthVersion(t *testing.T) {
	a := newAgreement(t, 100)
	a.store.config.Now = nil
	for way := range allWays {
		for _, cost := range []bucket.Tokens{1, a.limits[0].Capacity() + 1} {
			now := bucket.Instant(a.serverTime())
			old := bucket.Row{
				{Limit: a.limits[1], State: bucket.State{Spent: 1, AsOf: now - 1e6, Unit: a.limits[1].Unit()}},
				{Limit: a.limits[3], State: bucket.State{AsOf: now - 1e6, Unit: a.limits[3].Unit()}},
				{Limit: a.limits[2], State: bucket.State{Spent: int64(a.limits[2].Capacity()) * a.limits[2].Unit(), AsOf: now + 1e12, Unit: a.limits[2].Unit()}},
			}
			a.rows["k"] = old
			a.write("k", old)
			c := store.Charge{Key: "k", Limit: a.limits[0], Cost: cost}
			snap := a.takeBy(way, c)
			a.compareAlone(c, snap, now, bucket.Instant(a.serverTime()))
			if row := a.rows["k"]; len(row) != 1 || row[0].Limit != c.Limit || snap.Allowed {
				t.Errorf("way %d, %v: allowed %v, left %+v, want denied and one account of its own", way, cost, snap.Allowed, row)
			}
		}
	}
}
