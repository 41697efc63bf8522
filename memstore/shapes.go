// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// MaxRates bounds the different rates that the limits of one store can have, in
// its life: limits of one algorithm, rate and period count as one. A take with
// one more is an error. Policies have a handful; only a program that makes up a
// rate for every call gets near.
const MaxRates = 1 << shapeBits

// shapes numbers the shapes of limits, so that a slot can name its own in few
// bytes. It only grows.
type shapes struct {
	byNumber atomic.Pointer[[]shape]
	recent   [64]atomic.Uint32 // numbers of shapes in use, by hash

	mu     sync.Mutex // guards what is below, and appending to byNumber
	number map[bucket.Limit]uint64
}

// A shape is what the state in a slot needs to be read.
type shape struct {
	bucket.Limit       // a Limit.Shape
	first        int64 // of a sliding window: the number of the one before the store began
}

// init gives the shape of the zero limit the number 0, which new slots have.
func (s *shapes) init() {
	s.number = map[bucket.Limit]uint64{{}: 0}
	s.byNumber.Store(&[]shape{{}})
}

// shape returns the shape whose number tag has.
func (s *Store) shape(tag uint64) *shape { return &(*s.shapes.byNumber.Load())[tag&shapeMask] }

// shapeOf returns the number of l's shape.
func (s *Store) shapeOf(l *bucket.Limit) (uint64, error) {
	n, p := l.Refill()
	recent := &s.shapes.recent[(uint64(n)*0x9e3779b97f4a7c15^uint64(p)*0xff51afd7ed558ccd)>>58]
	if number := uint64(recent.Load()); l.SameShape(&s.shape(number).Limit) {
		return number, nil
	}
	s.shapes.mu.Lock()
	defer s.shapes.mu.Unlock()
	limit := l.Shape()
	number, ok := s.shapes.number[limit]
	if !ok {
		known := *s.shapes.byNumber.Load()
		if number = uint64(len(known)); number == MaxRates {
			return 0, fmt.Errorf("more than %d different rates in one store", MaxRates)
		}
		// A reader of the shorter slice does not see what is appended behind it.
		known = append(known, shape{limit, int64(s.base)/max(p, 1) - 1})
		s.shapes.byNumber.Store(&known)
		s.shapes.number[limit] = number
	}
	recent.Store(uint32(number))
	return number, nil
}
