// SPDX-License-Identifier: Apache-2.0

package aiusage

import (
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// heaviest are the keys that spent most, at most [MaxKeys]. The algorithm is the one of package topkeys: a key without a
// counter takes over the lowest one.
type heaviest map[string]*Key

func (h heaviest) add(s *policy.Settlement) {
	k := h[s.Key]
	if k == nil {
		k = &Key{Rule: s.Rule.Name, Key: s.Key}
		if len(h) >= MaxKeys {
			lowest := h.lowest()
			k.Spent, k.Error = lowest.Spent, lowest.Spent
			delete(h, lowest.Key)
		}
		h[s.Key] = k
	}
	k.Requests++
	k.Spent = addTokens(k.Spent, s.Charged)
	k.Last = time.Now()
}

func (h heaviest) lowest() (lowest *Key) {
	for _, k := range h {
		if lowest == nil || k.Spent < lowest.Spent {
			lowest = k
		}
	}
	return lowest
}

// stopped are the keys that guards denied last, at most [MaxStopped].
type stopped map[string]*StoppedKey

func (m stopped) add(s *mete.Status, now time.Time) {
	k := m[s.Key]
	if k == nil {
		if len(m) >= MaxStopped {
			delete(m, m.oldest().Key)
		}
		k = &StoppedKey{Rule: s.Rule.Name, Key: s.Key, First: now}
		m[s.Key] = k
	}
	k.Denials++
	k.Last, k.Until = now, now.Add(s.RetryAfter)
	if p := s.Limit.Penalty; p != nil && p.First() == bucket.MaxPenalty {
		k.Until = time.Time{} // a circuit breaker without auto_reset_after_minutes
	}
}

func (m stopped) oldest() (oldest *StoppedKey) {
	for _, k := range m {
		if oldest == nil || k.Last.Before(oldest.Last) {
			oldest = k
		}
	}
	return oldest
}
