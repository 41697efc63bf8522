// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
)

// A List holds the keys of one rule with the most records of one kind, with the package's guarantees.
type List struct {
	Rule string
	Kind Kind

	// Since and Until are the time range.
	Since, Until bucket.Instant

	// Total is the number of records, N in the guarantees. Dropped is the number of dropped records, of any key.
	Total, Dropped uint64

	// Unlisted is the maximum number of records of a key that is not in Keys.
	Unlisted uint64

	// Keys are all keys with a counter, highest count first. The first k of them include every key with more
	// records than the Count of the next one.
	Keys []Key
}

// A Key is a key in a [List].
type Key struct {
	// Key is the key of a bucket. If it is longer than MaxKeyBytes, Cut is true. Key is then its start, a tilde,
	// and a hash with a seed of this process.
	Key string
	Cut bool

	// Count is the number of records. It is at most Error too high.
	Count, Error uint64

	// First is the time of the first record since the key has had a counter without interruption. A pause longer
	// than a part of the window interrupts it. Losing the counter to another key does too. Last is the time of
	// the last record.
	First, Last bucket.Instant

	// Retry is the end of the wait in the last record, or 0 if there is none, as for [KindNear].
	Retry bucket.Instant
}

// Window returns the default time range of a list.
func (t *Tracker) Window() time.Duration { return t.config.Window }

// Counters returns the number of counters per rule and kind.
func (t *Tracker) Counters() int { return t.config.Counters }

// Top returns the records of a rule and kind. The time range is window, extended back to the start of a half of
// [Config.Window], but at most the range of a whole Window. Zero means [Config.Window].
//
// It takes time in proportion to the number of counters, and does not block records.
func (t *Tracker) Top(now bucket.Instant, rule string, kind Kind, window time.Duration) List {
	back := t.partsBack(window)
	list := List{Rule: rule, Kind: kind}
	part := t.part(now)
	if r := (*t.rules.Load())[rule]; r != nil && kind < kinds {
		part = r.kinds[kind].newest(part)
		r.kinds[kind].merge(&list, part-back, part)
	}
	list.Since = t.start(part - back)
	list.Until = max(now, list.Since)
	return list
}

// Since returns the start of the time range of a list: see [Tracker.Top].
func (t *Tracker) Since(now bucket.Instant, window time.Duration) bucket.Instant {
	return t.start(t.part(now) - t.partsBack(window))
}

func (t *Tracker) partsBack(window time.Duration) int64 {
	if window > 0 && bucket.Instant(window/time.Microsecond) <= t.length {
		return 1
	}
	return halves
}

func (t *Tracker) start(part int64) bucket.Instant {
	return max(t.begin, bucket.Instant(part)*t.length)
}

// All returns the lists of all rules with records of the kind in the time range, highest total first.
func (t *Tracker) All(now bucket.Instant, kind Kind, window time.Duration) []List {
	var lists []List
	for rule := range maps.Keys(*t.rules.Load()) {
		if l := t.Top(now, rule, kind, window); l.Total+l.Dropped > 0 {
			lists = append(lists, l)
		}
	}
	slices.SortFunc(lists, func(a, b List) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Rule, b.Rule))
	})
	return lists
}

// merge merges the summaries of all lanes for a range of parts. In a summary without a counter for a key, the key
// counts with the maximum that it may have.
func (s *series) merge(list *List, from, to int64) {
	merged := map[string]*Key{}
	for i := range s.lanes {
		l := s.lanes[i].Load()
		if l == nil {
			continue
		}
		l.mu.Lock()
		l.advance(to)
		for p := max(from, l.part-parts+1, 0); p <= l.part; p++ {
			l.parts[p%parts].mergeInto(list, merged)
		}
		l.mu.Unlock()
	}
	for p := max(from, 0); p <= to; p++ {
		list.Dropped += s.dropped.countOf(p)
	}
	for _, k := range merged {
		k.Count += list.Unlisted
		k.Error += list.Unlisted
		list.Keys = append(list.Keys, *k)
	}
	slices.SortFunc(list.Keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error), cmp.Compare(a.Key, b.Key))
	})
}

// mergeInto adds s to the list. Counts exclude the maximum of a key without a counter, which merge adds at the
// end; until then a Count may be negative.
func (s *summary) mergeInto(list *List, merged map[string]*Key) {
	list.Total += s.total
	unlisted := s.maxUnlisted()
	list.Unlisted += unlisted
	for i := range s.counters {
		c := &s.counters[i]
		text := c.text()
		k := merged[text]
		if k == nil {
			k = &Key{Key: text, Cut: c.cut, First: c.first}
			merged[text] = k
		}
		k.Count += s.groups[c.group].count - unlisted
		k.Error += c.over - unlisted
		k.First = min(k.First, c.first)
		if c.last >= k.Last {
			k.Last, k.Retry = c.last, c.retry
		}
	}
}
