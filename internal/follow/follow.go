// SPDX-License-Identifier: Apache-2.0

// Package follow looks at a file or an address again and again, and reports news. The
// contents in use stay in use until others can be read, and each problem is reported once.
package follow

import (
	"context"
	"time"
)

// Every calls look at each interval until ctx ends, which look may cause.
func Every(ctx context.Context, interval time.Duration, look func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if ctx.Err() == nil { // select chooses at random if both are ready
				look()
			}
		}
	}
}

// News is the part of a look that is new since the look before.
type News int

const (
	None      News = iota // the same contents, or the same problem
	Changed               // other contents are in use
	Failed                // a problem that the look before did not have
	Recovered             // the contents can be read again, unchanged
)

// A Memory is the problem of the last look. The zero Memory is before the first look. It is
// not safe for concurrent use.
type Memory struct{ problem string }

// Note records a look: whether it put other contents in use, or else its error.
func (m *Memory) Note(changed bool, err error) News {
	before := m.problem
	m.problem = ""
	switch {
	case err != nil:
		if m.problem = err.Error(); m.problem == before {
			return None
		}
		return Failed
	case changed:
		return Changed
	case before != "":
		return Recovered
	}
	return None
}

// Failing reports whether the last look had a problem.
func (m *Memory) Failing() bool { return m.problem != "" }
