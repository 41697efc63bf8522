// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/bucket/testdata/vectors"
)

// TestVectors replays every published vector on this package and on the oracle. To add a step, write it with
// any answer: the failure prints both actual answers.
func TestVectors(t *testing.T) {
	cases, err := vectors.Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 300 {
		t.Errorf("%d cases, want at least 300", len(cases))
	}
	names := map[string]bool{}
	for _, c := range cases {
		name := strings.TrimSuffix(c.File, ".json") + "/" + c.Name
		if names[name] || c.Name == "" || c.Comment == "" {
			t.Errorf("%q: a case needs a name of its own and a comment", name)
		}
		names[name] = true
		if c.File == "histories.json" {
			t.Run(name, func(t *testing.T) { replayHistory(t, c) })
			continue
		}
		t.Run(name, func(t *testing.T) { replay(t, c) })
	}
}

func replay(t *testing.T, c vectors.Case) {
	if c.Refused {
		if l, _, err := c.Specs[0].Compile(); err == nil {
			t.Errorf("compiled to %v, want an error", l)
		}
		return
	}
	rows, oracles := make([]bucket.Row, len(c.Specs)), make([]oracleRow, len(c.Specs))
	takes := map[takenBy]twinTake{}
	punished := make(twinPenalties, len(c.Specs))
	for i, s := range c.Steps {
		for _, charge := range s.Charges {
			b := charge.Bucket
			switch s.Op {
			case vectors.Reset:
				rows[b], oracles[b], punished[b] = nil, nil, twinPenalty{}
			case vectors.Refund:
				rows[b] = rows[b].Refund(s.At, charge.Cost)
				oracles[b].refund(int64(s.At), int64(charge.Cost))
			case vectors.Cancel:
				taken := takes[takenBy{charge.Of, b}]
				rows[b] = rows[b].Cancel(&charge.Limit, s.At, charge.Cost, taken.taken)
				oracles[b].cancel(taken.l, int64(s.At), int64(charge.Cost), taken.take)
			}
			checkRefill(t, charge)
		}
		if s.Op != vectors.Reset && s.Op != vectors.Refund && s.Op != vectors.Cancel {
			ask(t, i, s, rows, oracles, takes, punished)
		}
	}
}

// replayHistory is replay for takes of one bucket that await their cancellation. The script that wrote these vectors is
// their oracle.
func replayHistory(t *testing.T, c vectors.Case) {
	var row bucket.Row
	taken := map[int]bucket.Taken{}
	for i, s := range c.Steps {
		charge := s.Charges[0]
		l := &charge.Limit
		if s.Op == vectors.Cancel {
			row = row.Cancel(l, s.At, charge.Cost, taken[charge.Of])
			continue
		}
		state, _ := row.StateFor(l, s.At)
		snap := l.Peek(state, s.At, charge.Cost, 0)
		if s.Op == vectors.Take && snap.Allowed {
			state, snap = l.Take(state, s.At, charge.Cost)
			row = row.WithState(l, state, s.At, charge.Cost)
			if taken[i] = snap.Taken(); charge.Await > 0 {
				row = row.WithAwait(l, s.At, taken[i], charge.Await)
			}
		}
		if got := answerOf(snap); got != answer(charge.Want) || got.Allowed != s.Allowed {
			t.Errorf("step %d:\n got %+v\nwant %+v", i, got, charge.Want)
		}
	}
}

// A takenBy identifies the bucket of a step that took from it.
type takenBy struct{ step, bucket int }

// ask compares a take or a peek of the package and of the oracle with the step.
func ask(t *testing.T, i int, s vectors.Step, rows []bucket.Row, oracles []oracleRow, takes map[takenBy]twinTake, punished twinPenalties) {
	t.Helper()
	states, charges := make([]bucket.State, len(s.Charges)), make([]bucket.Charge, len(s.Charges))
	fresh := make([]bool, len(s.Charges))
	allowed, wait := true, s.MaxWait.Microseconds()
	if s.MaxWait == bucket.Forced {
		wait = forced
	}
	for j, c := range s.Charges {
		states[j], fresh[j] = rows[c.Bucket].StateFor(&c.Limit, s.At)
		charges[j] = bucket.Charge{Limit: c.Limit, Cost: c.Cost}
		own := oracles[c.Bucket].ask(oracleCharged(t, c), int64(s.At), int64(c.Cost), wait, 'p')
		allowed = punished[c.Bucket].ask(s, c, own) && own.Allowed && allowed
	}
	if allowed != s.Allowed {
		t.Errorf("step %d: oracle says allowed %v, vector %v", i, allowed, s.Allowed)
	}
	var snaps []bucket.Snapshot
	var got bool
	got = true
	for j, c := range charges {
		snaps = append(snaps, c.Limit.Peek(states[j], s.At, c.Cost, s.MaxWait))
		punished[s.Charges[j].Bucket].apply(s, s.Charges[j], &snaps[j])
		got = got && snaps[j].Allowed
	}
	if s.Op != vectors.Peek && (got || !punished.any(s)) {
		snaps, got = bucket.TakeAll(nil, states, charges, s.At, s.MaxWait)
	}
	if got != s.Allowed {
		t.Errorf("step %d: allowed %v, want %v", i, got, s.Allowed)
	}
	for j, c := range s.Charges {
		op := byte('d')
		switch {
		case s.Op == vectors.Peek:
			op = 'p'
		case got:
			op, rows[c.Bucket] = 't', rows[c.Bucket].WithState(&c.Limit, states[j], s.At, c.Cost)
		case fresh[j]:
			rows[c.Bucket] = rows[c.Bucket].WithState(&c.Limit, states[j], s.At, 0)
		}
		if got := answerOf(snaps[j]); got != answer(c.Want) {
			t.Errorf("step %d, bucket %d:\n got %+v\nwant %+v", i, c.Bucket, got, c.Want)
		}
		if left, level := snaps[j].Penalty(); left != c.WantPenalty || level != c.WantLevel {
			t.Errorf("step %d, bucket %d: penalty %v, level %d; want %v, level %d", i, c.Bucket, left, level, c.WantPenalty, c.WantLevel)
		}
		l := oracleCharged(t, c)
		if o := punished[c.Bucket].show(s, c, oracles[c.Bucket].ask(l, int64(s.At), int64(c.Cost), wait, op)); o != answer(c.Want) {
			t.Errorf("step %d, bucket %d:\noracle %+v\n  want %+v", i, c.Bucket, o, c.Want)
		}
		if op == 't' {
			takes[takenBy{i, c.Bucket}] = twinTake{l, snaps[j].Taken(), oracles[c.Bucket][0].o.taken(int64(c.Cost))}
		}
	}
}

// oracleCharged returns the oracle of a charge's limit.
func oracleCharged(t *testing.T, c vectors.Charge) *oracleLimit {
	t.Helper()
	o, err := oracleFor(c.Spec, c.Key)
	if err != nil {
		t.Fatal(err)
	}
	if c.Starts != nil {
		o.starts = c.Starts
	}
	if c.Spec.Anchor < bucket.AnchorFirst && o.start != c.Offset {
		t.Errorf("%v for %q begins at %d, want %d", c.Limit, c.Key, o.start, c.Offset)
	}
	return o
}

// checkRefill compares the refill of a charge's limit with the requested rate. If that does not fit, it must be
// the best lower fraction.
func checkRefill(t *testing.T, c vectors.Charge) {
	t.Helper()
	n, p := c.Limit.Refill()
	asked := big.NewRat(int64(c.Spec.Rate.Tokens), c.Spec.Rate.Per.Microseconds())
	used := big.NewRat(int64(n), p)
	if used.Cmp(asked) == 0 {
		return
	}
	bounded := c.Spec.Capacity
	if c.Spec.MaxReserved != nil {
		bounded += *c.Spec.MaxReserved
	}
	bounded += c.Spec.Queue
	maxP := (1<<53 - 1) / int64(bounded)
	if best := bruteForceBelow(asked, maxP); used.Cmp(best) != 0 {
		t.Errorf("rate %v with denominators up to %d: %v, want %v", c.Spec.Rate, maxP, used, best)
	}
}
