// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/metehq/mete/internal/prose"
)

const (
	progressEvery = 100 * time.Millisecond
	lookEvery     = 1024               // requests between two checks of the clock
	maxLeft       = 10_000 * time.Hour // longest displayed estimate
)

// Progress shows the progress of a replay on a terminal, at most ten times per second. A nil Progress shows
// nothing. It is not safe for concurrent use.
type Progress struct {
	w     io.Writer
	size  int64
	now   func() time.Time
	start time.Time
	shown time.Time
	calls int64
}

// NewProgress returns a progress that writes to w. size is the stored size of the trace in bytes, or 0 if unknown.
// now is the clock.
func NewProgress(w io.Writer, size int64, now func() time.Time) *Progress {
	t := now()
	return &Progress{w: w, size: size, now: now, start: t, shown: t}
}

// Step counts one request. bytes is the number of bytes read so far.
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
	elapsed := now.Sub(p.start)
	part, left := fmt.Sprintf("%d MB", bytes/1_000_000), ""
	if p.size > 0 {
		done := min(float64(bytes)/float64(p.size), 1)
		part = fmt.Sprintf("%.0f%% of %d MB", 100*done, (p.size+999_999)/1_000_000)
		left = ", " + prose.Duration(remaining(elapsed, done)) + " left"
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s, %d requests, %.0f per second%s", part, p.calls, float64(p.calls)/elapsed.Seconds(), left)
}

// remaining estimates the remaining time in whole seconds from the fraction done.
func remaining(elapsed time.Duration, done float64) time.Duration {
	left := min(elapsed.Seconds()*(1-done)/done, maxLeft.Seconds()) // infinite if done is 0
	return time.Duration(math.Ceil(left)) * time.Second
}

// Clear removes the progress from the terminal.
func (p *Progress) Clear() {
	if p != nil && p.shown != p.start {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
