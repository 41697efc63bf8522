// SPDX-License-Identifier: Apache-2.0

// Package follow polls a file or a URL and reports changes. A failed read keeps the current contents, and
// each problem is reported once.
package follow

import (
	"context"
	"time"
)

// Every calls look at each interval until ctx ends. The function look may cancel ctx.
func Every(ctx context.Context, interval time.Duration, look func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if ctx.Err() == nil { // select chooses randomly if both are ready
				look()
			}
		}
	}
}

// News is the result of a poll compared with the previous poll.
type News int

const (
	NewsNone      News = iota // the same contents, or the same problem
	NewsChanged               // new contents are active
	NewsFailed                // a new problem
	NewsRecovered             // readable again, unchanged
)

// A Memory remembers the problem of the last poll. The zero value has no problem. It is not safe for concurrent
// use.
type Memory struct{ problem string }

// Note records whether a poll activated new contents, or its error.
func (m *Memory) Note(changed bool, err error) News {
	before := m.problem
	m.problem = ""
	switch {
	case err != nil:
		if m.problem = err.Error(); m.problem == before {
			return NewsNone
		}
		return NewsFailed
	case changed:
		return NewsChanged
	case before != "":
		return NewsRecovered
	}
	return NewsNone
}

// Failing reports whether the last poll failed.
func (m *Memory) Failing() bool { return m.problem != "" }
