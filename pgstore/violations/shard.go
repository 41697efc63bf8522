// SPDX-License-Identifier: Apache-2.0

package violations

import (
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/bucket"
)

// singles is the number of rows of a key before further denials share a row. They share the last of these rows.
const singles = 4

type shard struct {
	size int // bounds sources and rows

	mu         sync.Mutex // guards the fields below, and rows that may grow
	closed     bool
	sources    map[rowID]*source
	rows       []*row // in the order of writing
	recorded   int64  // denials of this shard
	aggregated int64  // recorded denials that share a row
}

type source struct {
	open   *row // the row that still grows, or nil
	rows   int  // number of rows, up to singles
	active bool // a denial came in this window
}

// count adds a denial to an open row, if there is one. Otherwise, room reports whether a new row fits.
func (s *shard) count(i rowID, cost bucket.Tokens, now time.Time) (counted, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded++
	from := s.sources[i]
	if from != nil && from.open != nil {
		s.share(from, cost, now)
		return true, true
	}
	return false, s.hasRoom(from)
}

// insert adds a row with one denial, or adds the denial to a row that another call has opened. It reports false if
// there is no room.
func (s *shard) insert(r *row) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.sources[r.id]
	if from != nil && from.open != nil {
		s.share(from, r.cost, r.first)
		return true
	}
	if !s.hasRoom(from) {
		return false
	}
	if from == nil {
		from = &source{}
		r.id.key = strings.Clone(r.id.key) // the caller's string is part of the decision
		s.sources[r.id] = from
	}
	from.active = true
	from.rows = min(from.rows+1, singles)
	s.rows = append(s.rows, r)
	if from.rows == singles || r.id.key == Others || len(s.rows) > s.size/4 {
		from.open, r.source = r, from
	}
	return true
}

func (s *shard) share(from *source, cost bucket.Tokens, now time.Time) {
	from.active = true
	from.open.add(cost, now)
	s.aggregated++
}

func (s *shard) hasRoom(from *source) bool {
	return !s.closed && len(s.rows) < s.size && (from != nil || len(s.sources) < s.size)
}

// take closes the oldest rows, at most this many, and appends them to dst.
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
		s.rows = nil // releases the memory after a flood
	}
	return dst
}

// sweep removes the sources without a denial in this window, and begins the next window.
func (s *shard) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, from := range s.sources {
		if from.open == nil && !from.active {
			delete(s.sources, i)
		}
		from.active = false
	}
}

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
