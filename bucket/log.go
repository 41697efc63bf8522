// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"slices"
	"time"
)

// A Log is what a sliding log remembers: costs and their instants, oldest first.
// A nil Log is empty. Its methods do not change it; [Limit.SpendOn] and
// [Limit.RefundOn] do.
type Log struct {
	entries []Entry
	sum     int64
}

// An Entry is a cost that a sliding log remembers.
type Entry struct {
	At   Instant
	Cost Tokens
}

// NewLog returns a log of entries whose instants ascend, for stores that keep
// them elsewhere.
func NewLog(entries []Entry) *Log {
	g := &Log{entries: entries}
	for _, e := range entries {
		g.sum += int64(e.Cost)
	}
	return g
}

// Entries returns what the log remembers, oldest first. The caller must not
// change it.
func (g *Log) Entries() []Entry {
	if g == nil {
		return nil
	}
	return g.entries
}

func (g *Log) clone() *Log { return &Log{slices.Clone(g.entries), g.sum} }

// entries returns the log of s, which under another limit was a bucket or a
// window: then it is one entry of all that was missing.
func (l *Limit) entries(s *State) *Log {
	switch missing := min(ceilDiv(s.Spent, max(s.Unit, 1)), int64(l.capacity)); {
	case s.Log != nil:
		return s.Log
	case missing == 0:
		return &Log{}
	default:
		return &Log{[]Entry{{max(s.AsOf, 0), Tokens(missing)}}, missing}
	}
}

// newest returns the instant before which nothing can be taken.
func (g *Log) newest() Instant {
	if len(g.entries) == 0 {
		return 0
	}
	return g.entries[len(g.entries)-1].At
}

// expired returns how many entries have left the window that ends at now, and
// what they add up to. A cost leaves it exactly one window after its instant.
func (g *Log) expired(l *Limit, now Instant) (n int, cost int64) {
	for n < len(g.entries) && g.entries[n].At <= now-Instant(l.p) {
		cost += int64(g.entries[n].Cost)
		n++
	}
	return n, cost
}

// look is [Limit.look] for sliding logs.
func (g *Log) look(l *Limit, now Instant) Verdict {
	at := max(now, g.newest())
	_, gone := g.expired(l, at)
	v := Verdict{spent: g.sum - gone, behind: int64(at - now)}
	if v.spent > 0 {
		v.behind = int64(g.newest() - now)
	}
	return v
}

// retry is 0 where cost is admitted at now, and else the wait until it would be:
// until as many of the oldest entries as must have left the window. The wait is in
// microseconds.
func (g *Log) retry(l *Limit, cost Tokens, maxWait time.Duration, now Instant) int64 {
	if cost < 0 || cost > l.capacity+l.debt || maxWait != Forced && cost > l.capacity {
		return never
	}
	room := int64(l.capacity - cost)
	if maxWait == Forced {
		room += int64(l.debt)
	}
	n, gone := g.expired(l, max(now, g.newest()))
	left := g.sum - gone
	if left <= room {
		return 0
	}
	for ; left > room; n++ {
		left -= int64(g.entries[n].Cost)
	}
	return sum(l.p, int64(g.entries[n-1].At-now))
}

// spendLog is SpendOn for sliding logs.
func (l *Limit) spendLog(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	g := l.entries(s)
	v := g.look(l, now)
	if v.retry = g.retry(l, cost, maxWait, now); v.retry > 0 {
		return v
	}
	at := max(now, g.newest())
	g.expire(l, at)
	if cost > 0 {
		g.add(Entry{at, cost})
	}
	s.keep(g, at)
	v.spent = g.sum
	v.behind = int64(s.AsOf - now)
	return v
}

// expire forgets the entries that have left the window. Their memory is free
// when the log next grows.
func (g *Log) expire(l *Limit, now Instant) {
	n, gone := g.expired(l, now)
	g.sum -= gone
	if g.entries = g.entries[n:]; len(g.entries) == 0 {
		g.entries = nil
	}
}

// add appends an entry, or joins it with the newest where there are too many or
// both are of one instant. What is joined counts from the later instant.
func (g *Log) add(e Entry) {
	g.sum += int64(e.Cost)
	if last := len(g.entries) - 1; last >= 0 && (last+1 >= MaxLogEntries || g.entries[last].At == e.At) {
		g.entries[last] = Entry{e.At, g.entries[last].Cost + e.Cost}
		return
	}
	g.entries = append(g.entries, e)
}

// keep makes g the log of s, with at as its instant where g is empty.
func (s *State) keep(g *Log, at Instant) {
	if len(g.entries) > 0 {
		*s = State{Spent: g.sum, AsOf: g.newest(), Unit: 1, Log: g}
		return
	}
	*s = State{AsOf: at, Unit: 1}
}

// refundLog is RefundOn for sliding logs. What it gives back
// are the oldest costs: whichever was meant, the others leave no sooner.
func (l *Limit) refundLog(s *State, now Instant, amount Tokens) {
	if amount <= 0 || s.Spent == 0 {
		return
	}
	g := l.entries(s)
	at := max(now, g.newest())
	g.expire(l, at)
	for left := int64(amount); left > 0 && len(g.entries) > 0; {
		first := &g.entries[0]
		back := min(left, int64(first.Cost))
		left, g.sum = left-back, g.sum-back
		if first.Cost -= Tokens(back); first.Cost == 0 {
			g.entries = g.entries[1:]
		}
	}
	s.keep(g, at)
}

// LogVerdict returns the verdict about a sliding log that a store keeps in a
// form of its own: spent is what it counts, behind how many microseconds its
// newest entry lies ahead of the caller's instant, and retryAfter that of the
// [Snapshot].
func LogVerdict(spent Tokens, behind int64, retryAfter time.Duration) Verdict {
	snap := Snapshot{RetryAfter: retryAfter}
	return Verdict{spent: int64(spent), behind: behind, retry: snap.retry()}
}
