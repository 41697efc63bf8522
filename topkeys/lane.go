// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"sync"
	"sync/atomic"
)

// memory is what is left of MaxBytes.
type memory struct{ left atomic.Int64 }

// take takes n bytes, if there are so many.
func (m *memory) take(n int) bool {
	if m.left.Add(-int64(n)) >= 0 {
		return true
	}
	m.give(n)
	return false
}

func (m *memory) give(n int) { m.left.Add(int64(n)) }

// laneBytes is what a lane takes beside its counters.
const laneBytes = 512

// A lane is one of several places where a record can be made.
type lane struct {
	mu       sync.Mutex
	closed   bool           // its rule is no more
	part     int64          // the number of the current part of time
	parts    [parts]summary // by part % parts
	recorded uint64
}

// turn goes on to a later part of time, and forgets what is too old for it. Time that
// runs backwards stands still.
func (l *lane) turn(part int64) {
	if part <= l.part {
		return
	}
	for p := max(l.part+1, part-parts+1); p <= part; p++ {
		l.parts[p%parts].reset()
	}
	l.part = part
}

func (l *lane) current() *summary  { return &l.parts[l.part%parts] }
func (l *lane) previous() *summary { return &l.parts[(l.part+parts-1)%parts] }

// bytes is what the lane has taken of the memory.
func (l *lane) bytes() (n int) {
	for i := range l.parts {
		n += cap(l.parts[i].counters) * counterBytes
	}
	return n + laneBytes
}

// A series is all records of one rule and one kind.
type series struct {
	lanes   [Lanes]atomic.Pointer[lane]
	dropped tally
}

// record makes a record in the first lane that nobody uses at this moment.
func (s *series) record(t *Tracker, e *event) bool {
	part := t.part(e.at)
	for i := range s.lanes {
		l := s.lanes[i].Load()
		if l == nil {
			if l = s.open(t, i, part); l == nil {
				break
			}
		}
		if !l.mu.TryLock() {
			continue
		}
		ok := l.record(t, part, e)
		l.mu.Unlock()
		if ok {
			return true
		}
	}
	s.dropped.add(part)
	return false
}

// record makes a record; the lane must be locked.
func (l *lane) record(t *Tracker, part int64, e *event) bool {
	if l.closed {
		return false
	}
	l.turn(part)
	if !l.current().record(e, t.config.Counters, &t.memory, l.previous()) {
		return false
	}
	l.recorded++
	return true
}

// close ends all lanes, and says what they have counted and taken.
func (s *series) close() (recorded uint64, bytes int) {
	for i := range s.lanes {
		if s.lanes[i].CompareAndSwap(nil, &lane{closed: true}) {
			continue
		}
		l := s.lanes[i].Load()
		l.mu.Lock()
		l.closed = true
		recorded += l.recorded
		bytes += l.bytes()
		l.mu.Unlock()
	}
	return recorded, bytes
}

// open makes the lane i, if there is memory for it.
func (s *series) open(t *Tracker, i int, part int64) *lane {
	if !t.memory.take(laneBytes) {
		return nil
	}
	l := &lane{part: part}
	if !s.lanes[i].CompareAndSwap(nil, l) {
		t.memory.give(laneBytes)
		return s.lanes[i].Load()
	}
	return l
}

// newest is the newest part of time that has a record, from part on.
func (s *series) newest(part int64) int64 {
	for i := range s.lanes {
		if l := s.lanes[i].Load(); l != nil {
			l.mu.Lock()
			part = max(part, l.part)
			l.mu.Unlock()
		}
	}
	return part
}

// A tally counts what was dropped in each part of time, without a lock: the lower
// bits are a count, the upper ones the number of its part.
type tally struct{ parts [parts]atomic.Uint64 }

const tallyBits = 40

func (t *tally) add(part int64) {
	const most = 1<<tallyBits - 1
	slot := &t.parts[part%parts]
	for {
		old := slot.Load()
		next := old + 1
		switch {
		case old>>tallyBits != uint64(part)&(1<<(64-tallyBits)-1):
			next = uint64(part)<<tallyBits + 1
		case old&most == most:
			return
		}
		if slot.CompareAndSwap(old, next) {
			return
		}
	}
}

// in is what was dropped in a part of time.
func (t *tally) in(part int64) uint64 {
	v := t.parts[part%parts].Load()
	if v>>tallyBits != uint64(part)&(1<<(64-tallyBits)-1) {
		return 0
	}
	return v & (1<<tallyBits - 1)
}
