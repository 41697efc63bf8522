// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"time"
)

const (
	progressEvery = 100 * time.Millisecond
	lookEvery     = 1024 // requests between two looks at the clock
)

// Progress shows on a terminal how far a replay is, at most ten times a second.
// A nil Progress shows nothing. It is not safe for concurrent use.
type Progress struct {
	w     io.Writer
	size  int64
	now   func() time.Time
	start time.Time
	shown time.Time
	calls int64
}

// NewProgress returns a progress that writes to w. The size is that of the
// trace in bytes, 0 where nobody knows; now is the clock.
func NewProgress(w io.Writer, size int64, now func() time.Time) *Progress {
	t := now()
	return &Progress{w: w, size: size, now: now, start: t, shown: t}
}

// Step counts one request, after so many bytes of the trace.
func (p *Progress) Step(bytes int64) {
	if p == nil {
		return
	}
	if p.calls++; p.calls%lookEvery != 0 {
		return
	}
	now := p.now()
	if now.Sub(p.shown) < progressEvery {
		return
	}
	p.shown = now
	part := fmt.Sprintf("%d MB", bytes/1_000_000)
	if p.size > 0 {
		part = fmt.Sprintf("%.0f %%", min(100*float64(bytes)/float64(p.size), 100))
	}
	rate := float64(p.calls) / now.Sub(p.start).Seconds()
	fmt.Fprintf(p.w, "\r\x1b[K%s, %d requests, %.0f a second", part, p.calls, rate)
}

// Clear removes what is shown.
func (p *Progress) Clear() {
	if p != nil && p.shown != p.start {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
