// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/bucket"
)

// singles is how many rows a key has of its own making before its denials share
// one: the last of them is that.
const singles = 4

// A shard gathers the rows of some keys.
type shard struct {
	size int // bounds both sources and rows

	mu         sync.Mutex // guards the fields below, and rows that may grow
	closed     bool
	sources    map[id]*source
	rows       []*row // in the order in which they are to be written
	recorded   int64  // denials that came here
	aggregated int64  // of these, those that found a row to share
}

// A source is where denials come from that may share a row.
type source struct {
	open   *row // that grows; nil for none
	rows   int  // that were made, up to singles
	lately bool // there was one in this window
}

// count counts a denial where there is a row for it to share, and says so. Else
// room says whether there could be one.
func (s *shard) count(i id, cost bucket.Tokens, now time.Time) (counted, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded++
	from := s.sources[i]
	if from != nil && from.open != nil {
		s.share(from, cost, now)
		return true, true
	}
	return false, s.room(from)
}

// insert adds a row with one denial, unless there is a row to share by now, or no
// room. It reports whether the denial is counted.
func (s *shard) insert(r *row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.sources[r.id]
	if from != nil && from.open != nil {
		s.share(from, r.cost, r.first)
		return true
	}
	if !s.room(from) {
		return false
	}
	if from == nil {
		from = &source{}
		r.id.key = strings.Clone(r.id.key) // the caller's is part of the decision
		s.sources[r.id] = from
	}
	from.lately = true
	from.rows = min(from.rows+1, singles)
	s.rows = append(s.rows, r)
	if from.rows == singles || r.id.key == Others || len(s.rows) > s.size/4 {
		from.open, r.source = r, from
	}
	return true
}

func (s *shard) share(from *source, cost bucket.Tokens, now time.Time) {
	from.lately = true
	from.open.add(cost, now)
	s.aggregated++
}

// room says whether there is room for one more row, and for its source.
func (s *shard) room(from *source) bool {
	return !s.closed && len(s.rows) < s.size && (from != nil || len(s.sources) < s.size)
}

// take appends to dst the oldest rows, so many at most. They grow no more.
func (s *shard) take(dst []*row, most int) []*row {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.rows))
	for _, r := range s.rows[:n] {
		if r.source != nil {
			r.source.open, r.source = nil, nil
		}
	}
	dst = append(dst, s.rows[:n]...)
	clear(s.rows[:n])
	if s.rows = s.rows[n:]; len(s.rows) == 0 {
		s.rows = nil // what was grown in a flood is given back
	}
	return dst
}

// sweep forgets the sources from which nothing came in this window, and begins
// the next.
func (s *shard) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, from := range s.sources {
		if from.open == nil && !from.lately {
			delete(s.sources, i)
		}
		from.lately = false
	}
}

// close has the shard take nothing more.
func (s *shard) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, from := range s.sources {
		if from.open != nil {
			from.open.source, from.open = nil, nil
		}
	}
}
