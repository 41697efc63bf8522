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

// An AnswerError reports that the answer of the script is malformed, or that the script's decision differs from
// the decision of package bucket.
type AnswerError struct{ what string }

func (e *AnswerError) Error() string { return "unexpected answer from the Redis script: " + e.what }

func newAnswerError(what, text string) error {
	return &AnswerError{what + ": " + strconv.Quote(text)}
}

type wordReader struct{ rest string }

func (w *wordReader) nextWord() string {
	word, rest, _ := strings.Cut(w.rest, " ")
	w.rest = rest
	return word
}

func (w *wordReader) nextInt() (int64, bool) {
	v, err := strconv.ParseInt(w.nextWord(), 10, 64)
	return v, err == nil
}

// nextRow reads a row of a plain program. An absent row is "-".
func (w *wordReader) nextRow() (bucket.State, error) {
	if rest, absent := strings.CutPrefix(w.rest, "- "); absent {
		w.rest = rest
		return bucket.State{}, nil
	}
	state, rest, err := cutPacked(w.rest)
	w.rest = strings.TrimPrefix(rest, " ")
	return state, err
}

// readAnswers distributes the script's answer over the asks of p. An ask with a malformed part gets an error.
func (p *program) readAnswers(text string) {
	w := wordReader{text}
	now, ok := w.nextInt()
	if !ok {
		p.fail(newAnswerError("invalid time", text))
		return
	}
	if p.plain {
		p.readPlainAnswers(&w, bucket.Instant(now))
		return
	}
	tallies := make([]tally, len(p.groups))
	done := 0
	for i, a := range p.asks {
		at := p.places[i]
		if at < 0 {
			a.readAnswer(&w, bucket.Instant(now))
			continue
		}
		t := &tallies[at]
		if at == done {
			done++
			admitted, ok := w.nextInt()
			t.state, t.err = parseState(w.nextWord(), p.limits[p.groups[at].limit].Unit())
			if t.admitted = admitted; !ok && t.err == nil {
				t.err = newAnswerError("invalid count", text)
			}
		}
		t.replay(a, bucket.Instant(now))
	}
}

// errCorruptRow is the error of a take if one of its keys holds a value that is not a bucket.
var errCorruptRow = errors.New("a key of the store does not hold a valid bucket: reset the key, or use a different prefix")

// failCorrupt fails the asks that use the keys with these numbers, and marks all other asks for a retry. The
// script has changed nothing.
func (p *program) failCorrupt(numbers string) {
	bad, beside := map[int64]bool{}, map[string]bool{}
	first := len(p.keys[states]) + len(p.keys[logs]) + len(p.keys[held])
	for _, text := range strings.Fields(numbers) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > first+len(p.keys[others]) {
			p.fail(newAnswerError("invalid key", numbers))
			return
		}
		if bad[int64(n)] = true; n > first {
			beside[p.keys[others][n-first-1]] = true
		}
	}
	for _, a := range p.asks {
		spoiled := beside[a.memory] || a.hold != nil && beside[a.hold.record] || slices.ContainsFunc(a.leases, func(key string) bool { return beside[key] })
		for i := range a.charges {
			spoiled = spoiled || bad[p.keyNumber(&a.charges[i])]
		}
		if a.retryAlone = !spoiled; spoiled {
			a.Err = &mete.StoreError{Spent: mete.NotSpent, Err: errCorruptRow}
		}
	}
}

func (p *program) fail(err error) {
	for _, a := range p.asks {
		a.Err = err
	}
}

type tally struct {
	state    bucket.State
	admitted int64
	err      error
}

// replay decides a's take of the group as package bucket does, and compares it with the script's count.
func (t *tally) replay(a *ask, now bucket.Instant) {
	if a.Err = t.err; t.err != nil {
		return
	}
	c := &a.charges[0]
	var v bucket.Verdict
	t.state, v = c.Limit.Spend(t.state, now, c.Cost, 0)
	if a.allowed = v.Allowed(); a.allowed != (t.admitted > 0) {
		a.Err = newAnswerError("the decision differs", strconv.FormatInt(t.admitted, 10))
		return
	}
	t.admitted--
	a.snaps = append(a.snaps[:0], bucket.Snapshot{})
	v.Show(&a.snaps[0], &c.Limit, c.Cost, now)
}

func (a *ask) readAnswer(w *wordReader, now bucket.Instant) {
	switch a.op {
	case opTake:
		a.readTake(w)
	case opBorrow:
		a.readBorrow(w, now)
	case opSettle, opRenew:
		a.hold.answer = w.nextWord()
	}
}

func (a *ask) readTake(w *wordReader) {
	verdict := w.nextWord()
	if verdict == "H" && a.hold != nil {
		a.hold.refusal = w.nextWord()
		return
	}
	if a.hold != nil && (verdict == "2" || verdict == "3") {
		a.hold.repeated, a.hold.slotEnded, verdict = true, verdict == "3", "1"
	}
	at, ok := w.nextInt()
	if a.allowed = verdict == "1"; !ok || !a.allowed && verdict != "0" {
		a.Err = newAnswerError("invalid verdict", verdict)
	}
	a.snaps = a.snaps[:0]
	agree := true
	for i := range a.charges {
		snap, err := a.readPart(i, w.nextWord(), bucket.Instant(at))
		if err != nil {
			a.Err = err
		}
		agree = agree && snap.Allowed
		a.snaps = append(a.snaps, snap)
	}
	if a.Err == nil && agree != a.allowed {
		a.Err = newAnswerError("the decision of several buckets differs", verdict)
	}
}

// readPart reads the i'th charge. It has the form cost:state with the state before the take, or cost:state:limit
// with the state after a remembered take. An empty cost is the charge's cost.
func (a *ask) readPart(i int, text string, at bucket.Instant) (snap bucket.Snapshot, err error) {
	text, penalty, punished := strings.Cut(text, "!")
	if punished {
		defer func() {
			if err == nil {
				err = readPenalty(&snap, penalty)
			}
		}()
	}
	c := a.charges[i]
	costText, text, _ := strings.Cut(text, ":")
	text, limitText, remembered := strings.Cut(text, ":")
	if costText != "" {
		cost, err := strconv.ParseInt(costText, 10, 64)
		if err != nil {
			return snap, newAnswerError("invalid cost", costText)
		}
		c.Cost = bucket.Tokens(cost)
	}
	if ends, lent := strings.CutPrefix(limitText, ":"); lent {
		return a.readLeasedPart(c, text, ends, at)
	}
	if remembered {
		if c.Limit, err = bucket.DecodeLimit(limitText); err != nil {
			return snap, newAnswerError("invalid limit", limitText)
		}
	}
	if strings.HasPrefix(text, "S") {
		v, err := parseSlotsVerdict(text)
		v.Show(&snap, &c.Limit, min(c.Cost, bucket.Token), at)
		return snap, err
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

// readLeasedPart reads the charge of a denied take if some tokens of its bucket are leased. The wait can last
// until those leases end.
func (a *ask) readLeasedPart(c store.Charge, text, ends string, at bucket.Instant) (snap bucket.Snapshot, err error) {
	state, err := parseState(text, c.Limit.Unit())
	if err != nil {
		return snap, err
	}
	lent, err := parseLeases(ends)
	snap = c.Limit.Peek(state, at, c.Cost, a.mode.MaxWait)
	if a.mode.MaxWait == 0 && snap.RetryAfter > 0 && snap.RetryAfter != bucket.Never {
		snap.RetryAfter = waitForLeases(c.Limit, state, lent, at, c.Cost)
	}
	return snap, err
}

func (a *ask) readBorrow(w *wordReader, now bucket.Instant) {
	granted, ok := w.nextInt()
	kept := w.nextWord()
	state, err := parseState(w.nextWord(), a.charges[0].Limit.Unit())
	switch {
	case !ok || err != nil:
		a.Err = newAnswerError("invalid grant", kept)
	case granted < 0:
		a.Err = errOvertaken
	}
	a.grant = lease.Grant{Tokens: bucket.Tokens(granted), Kept: kept == "1", State: state, At: now}
}
