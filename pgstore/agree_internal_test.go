// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// maxState bounds the numbers in a state.
const maxState = 1<<53 - 1

// TestPaths_Agree sends takes from token buckets through each path, with and without a first read. Answers and
// rows must equal the results of package bucket, for any previous rows.
func TestPaths_Agree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			a := newAgreement(t, seed)
			for range 350 {
				a.step()
			}
			if a.taken < 150 || a.denied < 100 || a.again < 10 {
				t.Errorf("%d took, %d were denied, %d were asked again: want more of each", a.taken, a.denied, a.again)
			}
		})
	}
}

// An agreement is a store with a selectable path, and a model of its content.
type agreement struct {
	*testing.T
	r     *rand.Rand
	store *Store
	pool  *pgxpool.Pool
	clock *storetest.Clock

	limits []bucket.Limit
	rows   map[string]bucket.Row

	taken, denied, again int
}

func newAgreement(t *testing.T, seed uint64) *agreement {
	pool, err := pgxpool.New(t.Context(), proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	schema := proctest.PostgresSchema(t)
	if err := Migrate(t.Context(), pool, schema); err != nil {
		t.Fatal(err)
	}
	a := &agreement{T: t, r: rand.New(testseed.PCG(seed, 31)), pool: pool, clock: storetest.NewClock(), rows: map[string]bucket.Row{}}
	config := Config{Schema: schema, Prefix: "p:", Now: a.clock.Now, Timeout: 30 * time.Second, Durable: seed%2 == 1}
	if a.store, err = New(pool, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.store.Close() })
	for len(a.limits) < 5 {
		if l, _, err := a.spec(len(a.limits)).Compile(); err == nil {
			a.limits = append(a.limits, l)
		}
	}
	return a
}

// spec returns a token bucket; the first kinds are common ones.
func (a *agreement) spec(kind int) bucket.Spec {
	spec := bucket.Spec{Capacity: 10 * bucket.Token, Rate: bucket.Rate{Tokens: 7 * bucket.Token, Per: 900 * time.Millisecond}}
	owed := bucket.Tokens(a.r.Int64N(20_000))
	switch kind {
	case 0:
	case 1: // a unit of 1
		spec.Rate = bucket.Rate{Tokens: bucket.Token, Per: time.Microsecond}
	case 2:
		spec.MaxReserved = &owed
	default: // the largest and slowest possible
		owed = bucket.Tokens(a.upTo(maxState))
		spec.Capacity = bucket.Tokens(1 + a.upTo(maxState-1))
		spec.Rate = bucket.Rate{Tokens: bucket.Tokens(1 + a.upTo(maxState-1)), Per: time.Duration(1+a.upTo(1<<40)) * time.Microsecond}
		if a.r.IntN(2) == 0 {
			spec.MaxReserved = &owed
		}
	}
	return spec
}

// upTo returns a number of any magnitude from 0 to most, and often most.
func (a *agreement) upTo(most int64) int64 {
	if a.r.IntN(4) == 0 {
		return most - min(a.r.Int64N(3), most)
	}
	return a.r.Int64N(most+1) >> a.r.IntN(50)
}

// oneOf returns one of values.
func oneOf(r *rand.Rand, values ...int64) int64 { return values[r.IntN(len(values))] }

// step makes one call.
func (a *agreement) step() {
	a.Helper()
	a.pass()
	for range a.r.IntN(2) {
		a.plant()
	}
	b := newBatch(a.store)
	b.Reset()
	for range 1 + a.r.IntN(2)*a.r.IntN(6) {
		k := a.r.IntN(8)
		l := a.limits[k%len(a.limits)]
		if a.r.IntN(12) == 0 {
			l = a.limits[a.r.IntN(len(a.limits))]
		}
		key := fmt.Sprint("k", k)
		b.Add(a.store.newAsk([]store.Charge{{Key: key, Limit: l, Cost: a.cost(l, a.rows[key])}}, mete.Mode{}))
	}
	if a.r.IntN(3) == 0 { // any time
		b.ungroup()
	}
	look := a.r.IntN(2) == 0
	a.store.denying.Store(look)
	conn, err := a.pool.Acquire(a.Context())
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Release()
	before := a.serverTime()
	b.setLockTimeout(time.Minute)
	if err := b.runOn(a.Context(), conn.Conn()); err != nil {
		a.Fatal(err)
	}
	a.compare(b, look, before, a.serverTime())
}

// pass moves the clock forward, backward, or not at all.
func (a *agreement) pass() {
	now := a.clock.Now()
	switch a.r.IntN(6) {
	case 0:
	case 1:
		a.clock.Set(max(now-bucket.Instant(a.r.Int64N(3_000_000)), 0))
	case 2:
		a.clock.Set(now + bucket.Instant(a.upTo(1<<40)))
	default:
		a.clock.Set(now + bucket.Instant(a.r.Int64N(400_000)))
	}
}

// plant inserts a bucket's row: usually one account of its limit, but also accounts of other limits.
func (a *agreement) plant() {
	k := a.r.IntN(8)
	var row bucket.Row
	for i := range 1 + a.r.IntN(6)/4 + a.r.IntN(8)/7 {
		at := k + i
		if a.r.IntN(5) == 0 {
			at = a.r.IntN(len(a.limits))
		}
		l := a.limits[at%len(a.limits)]
		if !slices.ContainsFunc(row, func(x bucket.Account) bool { return x.Limit == l }) {
			row = append(row, bucket.Account{Limit: l, State: a.state(l)})
		}
	}
	key := fmt.Sprint("k", k)
	a.rows[key] = row
	a.write(key, row)
}

// write puts a row into the table.
func (a *agreement) write(key string, row bucket.Row) {
	table, first := a.table(), row[0].State
	sql := "INSERT INTO " + table + " (key, lim, spent, as_of, full_at, others) VALUES ($1, $2, $3, $4, 0, NULL::text::" + a.store.config.Schema + ".account[]"
	for i, x := range row[1:] {
		account := fmt.Sprintf("ROW('%s', %d, %d, 0, NULL)::%s.account", limVersion+x.Limit.Encode(), x.State.Spent, x.State.AsOf, a.store.config.Schema)
		if i == 0 {
			sql = strings.TrimSuffix(sql, "NULL::text::"+a.store.config.Schema+".account[]") + "ARRAY[" + account
		} else {
			sql += ", " + account
		}
	}
	if len(row) > 1 {
		sql += "]"
	}
	if _, err := a.pool.Exec(a.Context(), "DELETE FROM "+table+" WHERE key = $1", []byte("p:"+key)); err != nil {
		a.Fatal(err)
	}
	if _, err := a.pool.Exec(a.Context(), sql+")", []byte("p:"+key), limVersion+row[0].Limit.Encode(), first.Spent, int64(first.AsOf)); err != nil {
		a.Fatal(err)
	}
}

// state returns any valid state of an account.
func (a *agreement) state(l bucket.Limit) bucket.State {
	n, p := l.Refill()
	c, most := int64(l.Capacity())*p, int64(l.Capacity()+l.MaxReserved())*p
	s := bucket.State{Unit: p}
	s.Spent = min(max(oneOf(a.r, 0, 1, c-1, c, c+1, most-1, most, a.upTo(c), a.upTo(most)), 0), most)
	now, full := int64(a.clock.Now()), s.Spent/int64(n)
	s.AsOf = bucket.Instant(max(oneOf(a.r, now, now-1, now+1, 0, now-full, now-full+1, now-full-1, now+a.r.Int64N(1000), now-a.upTo(full)), 0))
	return s
}

// cost returns a cost that is often close to the bucket's content.
func (a *agreement) cost(l bucket.Limit, row bucket.Row) bucket.Tokens {
	s, _ := row.StateFor(&l, a.clock.Now())
	c, there := int64(l.Capacity()), int64(l.Peek(s, a.clock.Now(), 0, 0).Remaining())
	return bucket.Tokens(min(max(oneOf(a.r, 1, c, c-1, c/2, c/3+1, there, there+1, there-1, there/2, there/3, a.upTo(c), c+1), 0), maxState))
}

func (a *agreement) table() string {
	return a.store.config.Schema + map[bool]string{false: ".bucket", true: ".bucket_durable"}[a.store.config.Durable]
}

func (a *agreement) serverTime() (now int64) {
	if err := a.pool.QueryRow(a.Context(), "SELECT "+a.store.config.Schema+".microseconds()").Scan(&now); err != nil {
		a.Fatal(err)
	}
	return now
}

// compare repeats b's takes with the model: grouped takes, then settleable ones.
func (a *agreement) compare(b *batch, look bool, before, after int64) {
	a.Helper()
	now := a.clock.Now()
	var order []*ask
	for i, x := range b.asks {
		if b.places[i] >= 0 && !x.retryMixed && !slices.Contains(b.settle.asks, x) {
			order = append(order, x)
		}
	}
	for _, x := range b.settle.asks {
		if !x.retryMixed {
			order = append(order, x)
		}
	}
	decided := len(order)
	order = b.appendRest(order)
	found, changed := maps.Clone(a.rows), map[string]bool{}
	for i, x := range order {
		c := &x.charges[0]
		old := a.rows[c.Key]
		row, want, wrote := take(old, &c.Limit, now, c.Cost)
		if x.Err != nil || x.allowed != want.Allowed || !slices.Equal(x.snaps, []bucket.Snapshot{want}) {
			a.Fatalf("look %v, %d decided at first, take %d of %d, at %d: %+v of %+v:\n got %v %+v, %v\nwant %+v",
				look, decided, i, len(order), now, *c, old, x.allowed, x.snaps, x.Err, want)
		}
		if x.retryMixed {
			a.again++
			if was := found[c.Key]; len(was) == 1 && was[0].Limit == c.Limit && x.isPlain() {
				a.Errorf("%+v of %+v could be decided as a plain take, and was not", *c, old)
			}
		}
		a.rows[c.Key] = row
		changed[c.Key] = changed[c.Key] || wrote
		if want.Allowed {
			a.taken++
		} else {
			a.denied++
		}
	}
	a.compareRows(changed, before, after)
}

// take is the result of package bucket for a take from a row. It also reports whether the row is written.
func take(row bucket.Row, l *bucket.Limit, now bucket.Instant, cost bucket.Tokens) (bucket.Row, bucket.Snapshot, bool) {
	state, fresh := row.StateFor(l, now)
	state, snap := l.Take(state, now, cost)
	switch {
	case snap.Allowed:
		return row.WithState(l, state, now, cost), snap, true
	case fresh:
		return row.WithState(l, state, now, 0), snap, true
	}
	return row, snap, false
}

// compareRows compares the rows with the model. A row expires when all accounts are full, plus an hour, by the
// server's clock.
func (a *agreement) compareRows(changed map[string]bool, before, after int64) {
	a.Helper()
	got, due := a.read("")
	for key, row := range a.rows {
		if len(row) == 0 {
			continue
		}
		if !reflect.DeepEqual(got[key], row) {
			a.Fatalf("%s has %+v, want %+v", key, got[key], row)
		}
		delete(got, key)
		const hour, most = int64(time.Hour / time.Microsecond), 1 << 50
		full := row.FullAfter(a.clock.Now()).Microseconds()
		for i := range row { // a full row stays until its clock
			full = max(full, int64(row[i].State.AsOf-a.clock.Now()))
		}
		if changed[key] && full < most {
			if at := due[key] - hour - full; at < before || at > after+1 {
				a.Errorf("%s goes %d µs too late, %+v", key, at-after, row)
			}
		}
	}
	if len(got) > 0 {
		a.Fatalf("rows that should not be there: %+v", got)
	}
}

// readRows returns the rows of all keys or of one, and their expiry.
func (a *agreement) read(key string) (map[string]bucket.Row, map[string]int64) {
	a.Helper()
	rows, err := a.pool.Query(a.Context(), `SELECT convert_from(b.key, 'UTF8'), b.full_at, x.lim, x.spent, x.as_of FROM `+a.table()+` b,
		LATERAL (SELECT 0 AS number, b.lim, b.spent, b.as_of
			UNION ALL SELECT number, lim, spent, as_of FROM unnest(b.others) WITH ORDINALITY AS o (lim, spent, as_of, prev, log, number)) x
		WHERE $1::text = '' OR b.key = convert_to('p:' || $1, 'UTF8') ORDER BY b.key, x.number`, key)
	if err != nil {
		a.Fatal(err)
	}
	defer rows.Close()
	found, due := map[string]bucket.Row{}, map[string]int64{}
	for rows.Next() {
		var key, lim string
		var fullAt, spent, asOf int64
		if err := rows.Scan(&key, &fullAt, &lim, &spent, &asOf); err != nil {
			a.Fatal(err)
		}
		key = strings.TrimPrefix(key, "p:")
		l, err := parseLimit(lim)
		if err != nil {
			a.Fatal(err)
		}
		state := bucket.State{Spent: spent, AsOf: bucket.Instant(asOf), Unit: l.Unit()}
		found[key], due[key] = append(found[key], bucket.Account{Limit: l, State: state}), fullAt
	}
	if rows.Err() != nil {
		a.Fatal(rows.Err())
	}
	return found, due
}
