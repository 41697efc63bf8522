// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"slices"
	"time"
)

// A Log holds the costs of a sliding log with their instants, oldest first. A nil Log is empty. Its methods do
// not change it, but [Limit.SpendOn] and [Limit.RefundOn] do.
type Log struct {
	entries []Entry
	sum     int64
}

// An Entry is one cost of a sliding log.
type Entry struct {
	At   Instant
	Cost Tokens
}

// NewLog returns a log of entries in ascending order of their instants.
func NewLog(entries []Entry) *Log {
	g := &Log{entries: entries}
	for _, e := range entries {
		g.sum += int64(e.Cost)
	}
	return g
}

// Entries returns the entries, oldest first. The caller must not change them.
func (g *Log) Entries() []Entry {
	if g == nil {
		return nil
	}
	return g.entries
}

func (g *Log) clone() *Log { return &Log{slices.Clone(g.entries), g.sum} }

// logOf returns the log of s. The state of a bucket or window under an earlier limit becomes one entry of
// everything that was missing.
func (l *Limit) logOf(s *State) *Log {
	switch missing := min(ceilDiv(s.Spent, max(s.Unit, 1)), int64(l.capacity)); {
	case s.Log != nil:
		return s.Log
	case missing == 0:
		return &Log{}
	default:
		return &Log{[]Entry{{max(s.AsOf, 0), Tokens(missing)}}, missing}
	}
}

// newest returns the instant of the newest entry. Nothing can be taken before it.
func (g *Log) newest() Instant {
	if len(g.entries) == 0 {
		return 0
	}
	return g.entries[len(g.entries)-1].At
}

// countExpired returns the number and the sum of the entries outside of the window that ends at now. A cost
// expires exactly one window after its instant.
func (g *Log) countExpired(l *Limit, now Instant) (n int, cost int64) {
	for n < len(g.entries) && g.entries[n].At <= now-Instant(l.p) {
		cost += int64(g.entries[n].Cost)
		n++
	}
	return n, cost
}

func (g *Log) verdictAt(l *Limit, now Instant) Verdict {
	at := max(now, g.newest())
	_, gone := g.countExpired(l, at)
	v := Verdict{spent: g.sum - gone, behind: int64(at - now)}
	if v.spent > 0 {
		v.behind = int64(g.newest() - now)
	}
	return v
}

// retryAfter returns the wait in microseconds until enough of the oldest entries have expired to admit cost, or
// 0 if it is admitted at now.
func (g *Log) retryAfter(l *Limit, cost Tokens, maxWait time.Duration, now Instant) int64 {
	if cost < 0 || cost > l.capacity+l.debt || maxWait != Forced && cost > l.capacity {
		return never
	}
	room := int64(l.capacity - cost)
	if maxWait == Forced {
		room += int64(l.debt)
	}
	n, gone := g.countExpired(l, max(now, g.newest()))
	left := g.sum - gone
	if left <= room {
		return 0
	}
	for ; left > room; n++ {
		left -= int64(g.entries[n].Cost)
	}
	return saturatingAdd(l.p, int64(g.entries[n-1].At-now))
}

func (l *Limit) spendLog(s *State, now Instant, cost Tokens, maxWait time.Duration) Verdict {
	g := l.logOf(s)
	v := g.verdictAt(l, now)
	if v.retry = g.retryAfter(l, cost, maxWait, now); v.retry > 0 {
		return v
	}
	at := max(now, g.newest())
	g.expire(l, at)
	if cost > 0 {
		g.add(Entry{at, cost})
	}
	s.setLog(g, at)
	v.spent = g.sum
	v.behind = int64(s.AsOf - now)
	return v
}

// expire removes expired entries. The next growth of the log releases their memory.
func (g *Log) expire(l *Limit, now Instant) {
	n, gone := g.countExpired(l, now)
	g.sum -= gone
	if g.entries = g.entries[n:]; len(g.entries) == 0 {
		g.entries = nil
	}
}

// add appends an entry. It merges the entry with the newest one if the log is full or both have the same
// instant. The later instant then counts for both.
func (g *Log) add(e Entry) {
	g.sum += int64(e.Cost)
	if last := len(g.entries) - 1; last >= 0 && (last+1 >= MaxLogEntries || g.entries[last].At == e.At) {
		g.entries[last] = Entry{e.At, g.entries[last].Cost + e.Cost}
		return
	}
	g.entries = append(g.entries, e)
}

func (s *State) setLog(g *Log, at Instant) {
	if len(g.entries) > 0 {
		*s = State{Spent: g.sum, AsOf: g.newest(), Unit: 1, Log: g}
		return
	}
	*s = State{AsOf: at, Unit: 1}
}

func (l *Limit) refundLog(s *State, now Instant, amount Tokens) {
	if amount <= 0 || s.Spent == 0 {
		return
	}
	g := l.logOf(s)
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
	s.setLog(g, at)
}

// LogVerdict returns the verdict about a sliding log that a store keeps in its own format. spent is the log's sum,
// behind the number of microseconds from the caller's instant to the newest entry, and retryAfter as in [Snapshot].
func LogVerdict(spent Tokens, behind int64, retryAfter time.Duration) Verdict {
	snap := Snapshot{RetryAfter: retryAfter}
	return Verdict{spent: int64(spent), behind: behind, retry: snap.retryAfter()}
}
