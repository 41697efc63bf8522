// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
)

// An oracleRow is a bucket with the accounts of several limits. Each account is a separate oracle.
type oracleRow []oracleAccount

type oracleAccount struct {
	l *oracleLimit
	o oracle
}

// lacks returns the missing amount at now, in whole thousandths.
func (o *oracle) lacks(l *oracleLimit, now int64) int64 {
	if l.limit.Algorithm() == bucket.AlgorithmContinuous {
		level, _ := o.level(l, now)
		return ceil(level.Sub(l.capacity, level)).Int64()
	}
	return int64(l.limit.Capacity()) - o.view(l, now).remaining(now)
}

func (r oracleRow) find(l *oracleLimit) int {
	for i := range r {
		if r[i].l.limit == l.limit {
			return i
		}
	}
	return -1
}

// open returns the account of l, or a new one.
func (r oracleRow) open(l *oracleLimit, now int64) (o oracle, fresh bool) {
	if i := r.find(l); i >= 0 {
		return r[i].o, false
	}
	at, missing, capacity := now, int64(0), int64(0)
	for _, a := range r {
		at = max(at, a.o.asOf)
		if m := a.o.lacks(a.l, now); m > missing {
			missing, capacity = m, int64(a.l.limit.Capacity())
		}
	}
	used := min(missing, capacity, int64(l.limit.Capacity()))
	owed := min(max(missing-capacity, 0), int64(l.limit.MaxReserved()))
	if l.limit.Algorithm() == bucket.AlgorithmSlidingWindow {
		_, p := l.limit.Refill()
		at = floorTo(at, 0, p)
	}
	if l.starts != nil {
		i, found := slices.BinarySearch(l.starts, at)
		if !found {
			i--
		}
		at = l.starts[i]
	} else if l.limit.Algorithm() == bucket.AlgorithmStepped && l.limit.Anchor() != bucket.AnchorFirst {
		_, p := l.limit.Refill()
		at = floorTo(at, l.start, p)
	}
	o.write(l, used+owed, at)
	if l.limit.Algorithm() == bucket.AlgorithmSlidingLog && used+owed > 0 {
		o.log = []admission{{at, used + owed}}
	}
	return o, missing > 0
}

// ask answers a take or, without spend, a peek. A take that another bucket denies spends nothing here, but
// keeps the account that it opened.
func (r *oracleRow) ask(l *oracleLimit, now, cost, maxWait int64, op byte) answer {
	o, fresh := r.open(l, now)
	a := o.ask(l, now, cost, maxWait, op == 't')
	switch {
	case op == 'p', !a.Allowed && !fresh, op == 'd' && !fresh:
	case op == 't' && a.Allowed:
		r.write(l, o, now, cost)
	default:
		r.write(l, o, now, 0)
	}
	return a
}

func (r *oracleRow) write(l *oracleLimit, o oracle, now, cost int64) {
	row := oracleRow{{l, o}}
	full := true
	for i, a := range *r {
		if i == r.find(l) || len(row) == bucket.MaxAccounts {
			continue
		}
		lacks := a.o.lacks(a.l, now)
		full = full && a.o.isFull(a.l, now)
		if part := min(cost, int64(a.l.limit.Capacity())-lacks); part > 0 {
			a.o.force(a.l, now, part)
		}
		row = append(row, a)
	}
	if *r = row; full {
		*r = row[:1]
	}
}

func (o *oracle) isFull(l *oracleLimit, now int64) bool { return o.lacks(l, now) == 0 }

// force spends an available cost.
func (o *oracle) force(l *oracleLimit, now, cost int64) {
	if l.limit.Algorithm() != bucket.AlgorithmContinuous {
		o.view(l, now).spend(o, now, cost)
		return
	}
	level, asOf := o.level(l, now)
	o.leave(l, level.Sub(level, big.NewRat(cost, 1)), asOf)
}

func (r oracleRow) refund(now, amount int64) {
	for i := range r {
		r[i].o.refund(r[i].l, now, amount)
	}
}

// A take is the oracle's record of an admitted take.
type take struct {
	cost, at int64
	lacked   *big.Rat // after it
}

// taken records the take that was just admitted.
func (o *oracle) taken(cost int64) take {
	return take{cost, o.asOf, new(big.Rat).Set(o.missing)}
}

func (r oracleRow) cancel(l *oracleLimit, now, amount int64, t take) {
	if i := r.find(l); i >= 0 {
		r[i].o.cancel(l, now, amount, t)
	}
}

// cancel refunds the allowed part of a take.
func (o *oracle) cancel(l *oracleLimit, now, amount int64, t take) {
	if amount = min(amount, t.cost); amount <= 0 || o.missing == nil || o.missing.Sign() == 0 {
		return
	}
	_, p := l.limit.Refill()
	switch l.limit.Algorithm() {
	case bucket.AlgorithmSlidingWindow:
		if w := o.window(l).at(now); w.start == t.at && w.recent > 0 {
			w.recent -= min(amount, w.recent)
			w.keep(o)
		}
		return
	case bucket.AlgorithmSlidingLog:
		g := o.entries(l)
		live, _ := g.live(now)
		at := g.now(now)
		var left []admission
		found := false
		for _, e := range live {
			if e.at == t.at {
				e.cost, found = e.cost-min(amount, e.cost), true
			}
			if e.cost > 0 {
				left = append(left, e)
			}
		}
		if found {
			g.entries = left
			g.keep(o, at)
		}
		return
	case bucket.AlgorithmStepped:
		if l.starts != nil {
			v := o.calendar(l, now)
			passed := 0
			for _, start := range v.later(t.at) {
				if start > v.asOf {
					break
				}
				passed++
			}
			o.giveBack(l, amount, t, big.NewRat(v.level, 1), v.asOf, big.NewRat(int64(passed)*v.n, 1))
			return
		}
		s := o.steps(l, now)
		level, since := s.at(now)
		steps := big.NewRat(max(since-t.at, 0)/p, 1)
		o.giveBack(l, amount, t, big.NewRat(level, 1), since, steps.Mul(steps, big.NewRat(s.n, 1)))
		return
	}
	level, asOf := o.level(l, now)
	elapsed := big.NewRat(max(asOf-t.at, 0), 1)
	o.giveBack(l, amount, t, level, asOf, elapsed.Mul(elapsed, l.rate))
}

// giveBack is cancel for a bucket with this level and refill since the take.
func (o *oracle) giveBack(l *oracleLimit, amount int64, t take, level *big.Rat, asOf int64, refilled *big.Rat) {
	missing := new(big.Rat).Sub(l.capacity, level)
	back := big.NewRat(amount, 1)
	if level.Sign() < 0 {
		if amount != t.cost || new(big.Rat).Add(missing, refilled).Cmp(t.lacked) != 0 {
			return
		}
	} else {
		back = least(back, new(big.Rat).Sub(big.NewRat(t.cost, 1), refilled))
	}
	back = least(back, missing)
	if back.Sign() > 0 {
		o.leave(l, level.Add(level, back), asOf)
	}
}

// A twin is a row and its oracle.
type twin struct {
	row    bucket.Row
	oracle oracleRow
	takes  []twinTake
	log    []string // what happened
}

type twinTake struct {
	l     *oracleLimit
	taken bucket.Taken
	take  take
}

func (w *twin) ask(t *testing.T, o *oracleLimit, now, cost, maxWait int64, op byte) {
	t.Helper()
	l := o.limit
	s, fresh := w.row.StateFor(&l, bucket.Instant(now))
	after, snap := s, bucket.Snapshot{}
	if op == 't' {
		after, snap = l.Reserve(s, bucket.Instant(now), bucket.Tokens(cost), waitOf(maxWait))
	} else {
		snap = l.Peek(s, bucket.Instant(now), bucket.Tokens(cost), waitOf(maxWait))
	}
	before := w.row
	w.log = append(w.log, fmt.Sprintf("at %d %c %d of %v, wait %d: %+v", now, op, cost, l, maxWait, answerOf(snap)))
	switch {
	case op == 't' && snap.Allowed:
		w.row = w.row.WithState(&l, after, bucket.Instant(now), bucket.Tokens(cost))
	case op != 'p' && fresh:
		w.row = w.row.WithState(&l, s, bucket.Instant(now), 0)
	}
	want := w.oracle.ask(o, now, cost, maxWait, op)
	if answerOf(snap) != want {
		t.Fatalf("%v of %+v at %d: cost %d, wait %d, %c:\n got %+v\nwant %+v", l, before, now, cost, maxWait, op, answerOf(snap), want)
	}
	if op == 't' && snap.Allowed && cost > 0 {
		w.takes = append(w.takes, twinTake{o, snap.Taken(), w.oracle[0].o.taken(cost)})
	}
	w.check(t, now)
}

// check compares the accounts.
func (w *twin) check(t *testing.T, now int64) {
	t.Helper()
	if len(w.row) != len(w.oracle) {
		t.Fatalf("%d accounts, by the oracle %d: %+v\n%s", len(w.row), len(w.oracle), w.row, strings.Join(w.log, "\n"))
	}
	for i := range w.row {
		a, b := &w.row[i], &w.oracle[i]
		got := a.Limit.Peek(a.State, bucket.Instant(now), 0, 0)
		if a.Limit != b.l.limit || int64(got.Missing()) != b.o.lacks(b.l, now) {
			t.Fatalf("account %d of %+v at %d misses %v, by the oracle %d\n%s", i, w.row, now, int64(got.Missing()), b.o.lacks(b.l, now), strings.Join(w.log, "\n"))
		}
	}
}
