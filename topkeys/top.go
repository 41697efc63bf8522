// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
)

// A List is the keys of one rule that were recorded most, as one kind: see the
// guarantee in the package's documentation.
type List struct {
	Rule string
	Kind Kind

	// Since and Until are the time that it is about.
	Since, Until bucket.Instant

	// Total is the N of the guarantee: how many records were made. Dropped is how
	// many were not, of whatever key.
	Total, Dropped uint64

	// Unlisted is how often a key that is not in Keys was recorded at most.
	Unlisted uint64

	// Keys are all that have a counter, those with the highest count first. Whoever
	// shows the first k of them shows every key that was recorded more often than
	// the next one's Count.
	Keys []Key
}

// A Key is one in a [List].
type Key struct {
	// Key is the key of a bucket. One of more than MaxKeyBytes is Cut: to its
	// beginning, and behind a tilde a hash of all of it that this process alone knows.
	Key string
	Cut bool

	// Count is how often it was recorded, and at most Error too many.
	Count, Error uint64

	// First is when it was recorded first since it has a counter: without a pause of
	// more than a part of the window, and without losing it to other keys. Last is
	// when it was recorded last.
	First, Last bucket.Instant

	// Retry is when it is admitted again, as it was told with the last record; 0
	// where it is admitted now, as of [Near].
	Retry bucket.Instant
}

// Window is how much time a list is about where nothing else is asked for.
func (t *Tracker) Window() time.Duration { return t.config.Window }

// Counters is the m of the guarantee.
func (t *Tracker) Counters() int { return t.config.Counters }

// Top returns what was recorded of a rule as one kind. It is about the time from now
// back to window, or a little longer: to the beginning of a half of
// [Config.Window], and no further than that goes, which also 0 stands for.
//
// It takes time in proportion to the number of counters, and holds up no record.
func (t *Tracker) Top(now bucket.Instant, rule string, kind Kind, window time.Duration) List {
	back := t.back(window)
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

// Since is where the time begins that a list is about: see [Tracker.Top].
func (t *Tracker) Since(now bucket.Instant, window time.Duration) bucket.Instant {
	return t.start(t.part(now) - t.back(window))
}

// back is how many parts of time the window goes back, beside the current one.
func (t *Tracker) back(window time.Duration) int64 {
	if window > 0 && bucket.Instant(window/time.Microsecond) <= t.length {
		return 1
	}
	return halves
}

// start is when a part of time began, for this tracker.
func (t *Tracker) start(part int64) bucket.Instant {
	return max(t.begin, bucket.Instant(part)*t.length)
}

// All returns the lists of all rules with a record of the kind in that time, those
// with the most first.
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

// merge puts the summaries of all lanes from one part of time to another together. In a
// summary where a key has no counter, it has as many as it may have had there.
func (s *series) merge(list *List, from, to int64) {
	merged := map[string]*Key{}
	for i := range s.lanes {
		l := s.lanes[i].Load()
		if l == nil {
			continue
		}
		l.mu.Lock()
		l.turn(to)
		for p := max(from, l.part-parts+1, 0); p <= l.part; p++ {
			l.parts[p%parts].mergeInto(list, merged)
		}
		l.mu.Unlock()
	}
	for p := max(from, 0); p <= to; p++ {
		list.Dropped += s.dropped.in(p)
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

// mergeInto adds s to the list. Of the keys it counts it leaves out what a key
// without a counter may have, which is added to all in the end; until then a Count
// may be below 0.
func (s *summary) mergeInto(list *List, merged map[string]*Key) {
	list.Total += s.total
	unlisted := s.unlisted()
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
