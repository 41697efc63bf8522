// SPDX-License-Identifier: Apache-2.0

// Package calendars selects the windows of calendar limits that a call to a remote store carries. Scripts and SQL functions
// have no time zones. They select one of the windows of the call by their own clock.
//
// A store may need other windows, such as those of another version's limit in a row. It then changes nothing, and returns
// its time, and pairs of a limit and an instant. The call is then repeated with these windows.
package calendars

import (
	"errors"
	"fmt"

	"github.com/metehq/mete/bucket"
)

// MaxCalls bounds the calls for one answer.
const MaxCalls = 4

// ErrClocks is the error after MaxCalls calls.
var ErrClocks = errors.New("the clocks of the store and of this process differ by more than a calendar window: synchronize them")

// maxStarts bounds the windows in a call, before now and after it.
const maxStarts = bucket.MaxCalendarWindows + 8

// A Call has the windows that a call carries. The zero Call has none. It is not safe for concurrent use.
type Call struct {
	clock bucket.Instant
	lists []list
}

type list struct {
	name     string
	calendar bucket.Calendar
	from, to bucket.Instant
}

// Reset removes all windows. The clock is the expected time of the store.
func (c *Call) Reset(clock bucket.Instant) { c.clock, c.lists = clock, c.lists[:0] }

// Learn sets the clock to the time of an answer that asked for windows.
func (c *Call) Learn(clock bucket.Instant) { c.clock = clock }

// Add adds the windows of l that the store will probably need. Limits without a calendar need none. The name
// identifies the limit in rows.
func (c *Call) Add(name string, l *bucket.Limit) {
	calendar, ok := l.Calendar()
	if !ok {
		return
	}
	const few = 8
	n, length := l.Refill()
	c.need(name, calendar, c.clock-bucket.Instant(length*(1+min(int64(l.Capacity()/max(n, 1)), few))))
}

// AddTaken adds the windows of l since an earlier take.
func (c *Call) AddTaken(name string, l *bucket.Limit, at bucket.Instant) {
	if calendar, ok := l.Calendar(); ok && at > 0 {
		c.need(name, calendar, at)
	}
}

// Need adds the windows at an instant that the store asked for. The text is from [bucket.Calendar.Encode].
func (c *Call) Need(name, text string, at bucket.Instant) error {
	calendar, err := bucket.DecodeCalendar(text)
	if err != nil {
		return fmt.Errorf("a bucket has a limit of another version: %w", err)
	}
	c.need(name, calendar, at)
	return nil
}

// need extends the windows of a limit to the instant at. They always contain the next window.
func (c *Call) need(name string, calendar bucket.Calendar, at bucket.Instant) {
	length := bucket.Instant(calendar.Window.Length().Microseconds())
	from, to := max(min(at, c.clock), c.clock-maxStarts*length), max(at, c.clock)+length
	for i := range c.lists {
		if w := &c.lists[i]; w.name == name {
			w.from, w.to = min(w.from, from), max(w.to, to)
			return
		}
	}
	c.lists = append(c.lists, list{name, calendar, from, to})
}

// Len returns the number of limits with windows.
func (c *Call) Len() int { return len(c.lists) }

// Each calls f with the starts of each limit's windows, which reach the given time after the last needed instant. If the
// bound on their number shortens them, the reach is 0: a store never needs more. The slice is valid during f.
func (c *Call) Each(reach int64, f func(name string, reach int64, starts []bucket.Instant)) {
	var starts []bucket.Instant
	for i := range c.lists {
		w := &c.lists[i]
		starts = w.calendar.Boundaries(starts[:0], w.from, w.to+bucket.Instant(reach), 2*maxStarts)
		covered := max(reach, 0)
		if len(starts) > 2*maxStarts {
			covered = 0
		}
		f(w.name, covered, starts)
	}
}
