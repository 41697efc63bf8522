// SPDX-License-Identifier: Apache-2.0

package httplimit

import "time"

// The bounds for calls of clients that are gone.
const (
	ReadOnTime  = readOnTime
	ReadOnBytes = readOnBytes
)

// SetReadOn lowers the bounds.
func (m *Middleware) SetReadOn(most time.Duration, bytes int64, calls int) {
	m.readOns.time, m.readOns.bytes, m.readOns.calls = most, bytes, calls
}

// CountReadOns returns the calls of clients that are gone.
func (m *Middleware) CountReadOns() int { return m.readOns.count() }

func (t *ModelTransport) CountReadOns() int { return t.readOns.count() }

func (s *readOns) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
