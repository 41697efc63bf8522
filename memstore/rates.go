// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/bucket"
)

// MaxRates bounds the different rates that the limits of one store can have, in
// its life. A take with one more is an error. Policies have a handful; only a
// program that makes up a rate for every call gets near.
const MaxRates = 1 << rateBits

// rates numbers the rates of limits, so that a slot can name its own in few
// bytes. It only grows.
type rates struct {
	byIndex atomic.Pointer[[]rate]
	recent  [64]atomic.Uint32 // indexes of rates in use, by hash

	mu     sync.Mutex // guards what is below, and appending to byIndex
	number map[rate]uint64
}

// A rate is n thousandths every p microseconds, in lowest terms.
type rate struct {
	n bucket.Tokens
	p int64
}

// init gives the zero rate the number 0, which new slots have.
func (r *rates) init() {
	r.number = map[rate]uint64{{}: 0}
	r.byIndex.Store(&[]rate{{}})
}

// rate returns the rate whose number tag has.
func (s *Store) rate(tag uint64) rate { return (*s.rates.byIndex.Load())[tag&rateMask] }

// hasRate reports whether tag has the number of n every p.
func (s *Store) hasRate(tag uint64, n bucket.Tokens, p int64) bool {
	known := &(*s.rates.byIndex.Load())[tag&rateMask]
	return known.n == n && known.p == p
}

// rateOf returns the number of l's rate.
func (s *Store) rateOf(l bucket.Limit) (uint64, error) {
	n, p := l.Refill()
	recent := &s.rates.recent[(uint64(n)*0x9e3779b97f4a7c15^uint64(p)*0xff51afd7ed558ccd)>>58]
	if number := uint64(recent.Load()); s.hasRate(number, n, p) {
		return number, nil
	}
	s.rates.mu.Lock()
	defer s.rates.mu.Unlock()
	number, ok := s.rates.number[rate{n, p}]
	if !ok {
		known := *s.rates.byIndex.Load()
		if number = uint64(len(known)); number == MaxRates {
			return 0, fmt.Errorf("more than %d different rates in one store", MaxRates)
		}
		// A reader of the shorter slice does not see what is appended behind it.
		known = append(known, rate{n, p})
		s.rates.byIndex.Store(&known)
		s.rates.number[rate{n, p}] = number
	}
	recent.Store(uint32(number))
	return number, nil
}
