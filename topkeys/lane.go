// SPDX-License-Identifier: Apache-2.0

package topkeys

import (
	"sync"
	"sync/atomic"
)

// A memory is the unused rest of MaxBytes.
type memory struct{ left atomic.Int64 }

func (m *memory) take(n int) bool {
	if m.left.Add(-int64(n)) >= 0 {
		return true
	}
	m.give(n)
	return false
}

func (m *memory) give(n int) { m.left.Add(int64(n)) }

const laneBytes = 512

// A lane holds records under its own lock, so that several lanes can record concurrently.
type lane struct {
	mu       sync.Mutex
	closed   bool           // its rule was removed
	part     int64          // number of the current part of the window
	parts    [parts]summary // indexed by part % parts
	recorded uint64
}

// advance moves on to a later part and drops summaries that are too old. It ignores a clock that runs backwards.
func (l *lane) advance(part int64) {
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

func (l *lane) bytes() (n int) {
	for i := range l.parts {
		n += cap(l.parts[i].counters) * counterBytes
	}
	return n + laneBytes
}

type series struct {
	lanes   [Lanes]atomic.Pointer[lane]
	dropped tally
}

// record makes a record in the first lane that is not locked.
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

// record makes a record. The lane must be locked.
func (l *lane) record(t *Tracker, part int64, e *event) bool {
	if l.closed {
		return false
	}
	l.advance(part)
	if !l.current().record(e, t.config.Counters, &t.memory, l.previous()) {
		return false
	}
	l.recorded++
	return true
}

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

// A tally counts dropped records per part without a lock. The lower bits are the count, the upper bits the part.
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

func (t *tally) countOf(part int64) uint64 {
	v := t.parts[part%parts].Load()
	if v>>tallyBits != uint64(part)&(1<<(64-tallyBits)-1) {
		return 0
	}
	return v & (1<<tallyBits - 1)
}
