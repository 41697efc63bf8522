// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/store"
)

// An AnswerError says that the script answered what it never should: that the
// answer is no answer, or that it decided otherwise than package bucket does.
type AnswerError struct{ what string }

func (e *AnswerError) Error() string { return "unexpected answer of the script: " + e.what }

// errAnswer is about an answer that is none.
func errAnswer(what, text string) error {
	return &AnswerError{what + ": " + strconv.Quote(text)}
}

// words reads an answer word by word.
type words struct{ rest string }

func (w *words) next() string {
	word, rest, _ := strings.Cut(w.rest, " ")
	w.rest = rest
	return word
}

func (w *words) int() (int64, bool) {
	v, err := strconv.ParseInt(w.next(), 10, 64)
	return v, err == nil
}

// row reads a row of a plain program. A row that is absent is "-".
func (w *words) row() (bucket.State, error) {
	if rest, absent := strings.CutPrefix(w.rest, "- "); absent {
		w.rest = rest
		return bucket.State{}, nil
	}
	state, rest, err := cutPacked(w.rest)
	w.rest = strings.TrimPrefix(rest, " ")
	return state, err
}

// answer gives every ask of the program its part of what the script said. An
// ask that it could not read has an error.
func (p *program) answer(text string) {
	w := words{text}
	now, ok := w.int()
	if !ok {
		p.fail(errAnswer("no time", text))
		return
	}
	if p.plain {
		p.answerPlain(&w, bucket.Instant(now))
		return
	}
	tallies := make([]tally, len(p.groups))
	done := 0
	for i, a := range p.asks {
		at := p.places[i]
		if at < 0 {
			a.answer(&w, bucket.Instant(now))
			continue
		}
		t := &tallies[at]
		if at == done {
			done++
			admitted, ok := w.int()
			t.state, t.err = parseState(w.next(), p.limits[p.groups[at].limit].Unit())
			if t.admitted = admitted; !ok && t.err == nil {
				t.err = errAnswer("no count", text)
			}
		}
		t.answer(a, bucket.Instant(now))
	}
}

// errSpoiled is what becomes of a take where its key holds what no bucket is.
var errSpoiled = errors.New("a key of the store holds what no bucket is: reset it, or use another prefix")

// spoiled fails the asks of the keys with these numbers, and has the others asked
// again. Nothing has been done.
func (p *program) spoiled(numbers string) {
	bad, beside := map[int64]bool{}, map[string]bool{}
	first := len(p.keys[states]) + len(p.keys[logs])
	for _, text := range strings.Fields(numbers) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > first+len(p.keys[others]) {
			p.fail(errAnswer("no key", numbers))
			return
		}
		if bad[int64(n)] = true; n > first {
			beside[p.keys[others][n-first-1]] = true
		}
	}
	for _, a := range p.asks {
		spoiled := beside[a.memory] || slices.ContainsFunc(a.leases, func(key string) bool { return beside[key] })
		for i := range a.charges {
			spoiled = spoiled || bad[p.keyNumber(&a.charges[i])]
		}
		if a.again = !spoiled; spoiled {
			a.Err = &mete.StoreError{Spent: mete.NotSpent, Err: errSpoiled}
		}
	}
}

// fail gives every ask the error.
func (p *program) fail(err error) {
	for _, a := range p.asks {
		a.Err = err
	}
}

// A tally is what is left of a group's answer.
type tally struct {
	state    bucket.State
	admitted int64
	err      error
}

// answer gives a its turn in the group.
func (t *tally) answer(a *ask, now bucket.Instant) {
	if a.Err = t.err; t.err != nil {
		return
	}
	c := &a.charges[0]
	var v bucket.Verdict
	t.state, v = c.Limit.Spend(t.state, now, c.Cost, 0)
	if a.allowed = v.Allowed(); a.allowed != (t.admitted > 0) {
		a.Err = errAnswer("disagrees about a take", strconv.FormatInt(t.admitted, 10))
		return
	}
	t.admitted--
	a.snaps = append(a.snaps[:0], bucket.Snapshot{})
	v.Show(&a.snaps[0], &c.Limit, c.Cost, now)
}

// answer reads what is a's of the script's answer.
func (a *ask) answer(w *words, now bucket.Instant) {
	switch a.op {
	case opTake:
		a.answerTake(w)
	case opBorrow:
		a.answerBorrow(w, now)
	}
}

func (a *ask) answerTake(w *words) {
	verdict := w.next()
	at, ok := w.int()
	if a.allowed = verdict == "1"; !ok || !a.allowed && verdict != "0" {
		a.Err = errAnswer("no verdict", verdict)
	}
	a.snaps = a.snaps[:0]
	agree := true
	for i := range a.charges {
		snap, err := a.part(i, w.next(), bucket.Instant(at))
		if err != nil {
			a.Err = err
		}
		agree = agree && snap.Allowed
		a.snaps = append(a.snaps, snap)
	}
	if a.Err == nil && agree != a.allowed {
		a.Err = errAnswer("disagrees about a take of several buckets", verdict)
	}
}

// part reads cost:state of the i'th charge, as the bucket was before, and
// cost:state:limit of a take that is remembered, as it was after that. No cost is
// the charge's.
func (a *ask) part(i int, text string, at bucket.Instant) (snap bucket.Snapshot, err error) {
	c := a.charges[i]
	costText, text, _ := strings.Cut(text, ":")
	text, limitText, remembered := strings.Cut(text, ":")
	if costText != "" {
		cost, err := strconv.ParseInt(costText, 10, 64)
		if err != nil {
			return snap, errAnswer("no cost", costText)
		}
		c.Cost = bucket.Tokens(cost)
	}
	if ends, lent := strings.CutPrefix(limitText, ":"); lent {
		return a.partLent(c, text, ends, at)
	}
	if remembered {
		if c.Limit, err = bucket.DecodeLimit(limitText); err != nil {
			return snap, errAnswer("no limit", limitText)
		}
	}
	if strings.HasPrefix(text, "L") {
		v, err := parseLogVerdict(text)
		v.Show(&snap, &c.Limit, c.Cost, at)
		return snap, err
	}
	state, err := parseState(text, c.Limit.Unit())
	switch {
	case err != nil:
	case remembered:
		snap = c.Limit.Peek(state, at, 0, bucket.Forced)
		snap.Cost, snap.Allowed, snap.RetryAfter = c.Cost, true, 0
	case a.allowed && !a.mode.DryRun:
		_, snap = c.Limit.Reserve(state, at, c.Cost, a.mode.MaxWait)
	default:
		snap = c.Limit.Peek(state, at, c.Cost, a.mode.MaxWait)
	}
	return snap, err
}

// partLent is part for a bucket of which something is lent, in a take that was
// denied: the wait may be until that has come back.
func (a *ask) partLent(c store.Charge, text, ends string, at bucket.Instant) (snap bucket.Snapshot, err error) {
	state, err := parseState(text, c.Limit.Unit())
	if err != nil {
		return snap, err
	}
	lent, err := parseLent(ends)
	snap = c.Limit.Peek(state, at, c.Cost, a.mode.MaxWait)
	if a.mode.MaxWait == 0 && snap.RetryAfter > 0 && snap.RetryAfter != bucket.Never {
		snap.RetryAfter = waitForLent(c.Limit, state, lent, at, c.Cost)
	}
	return snap, err
}

func (a *ask) answerBorrow(w *words, now bucket.Instant) {
	granted, ok := w.int()
	kept := w.next()
	state, err := parseState(w.next(), a.charges[0].Limit.Unit())
	switch {
	case !ok || err != nil:
		a.Err = errAnswer("no grant", kept)
	case granted < 0:
		a.Err = errPast
	}
	a.grant = lease.Grant{Tokens: bucket.Tokens(granted), Kept: kept == "1", State: state, At: now}
}
