// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"sync"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/sse"
)

const (
	// levelsAhead is the time that the levels of an event go beyond it. A page draws 20 s
	// ahead, and gets the next event after half a second.
	levelsAhead = 30 * time.Second

	// maxSteps bounds the steps ahead of a bucket that refills at once, and maxPoints the
	// points of its past in one event. Instead of more steps there is one line.
	maxSteps  = 100
	maxPoints = 2000

	// maxDecisions bounds the decisions in one event. The event counts further ones.
	maxDecisions = 500
)

// A course is the level of a watched bucket since the last event, and the decisions about
// it. The limit's own arithmetic fills in the level between two of them. A course is safe
// for concurrent use.
type course struct {
	now func() time.Time

	mu        sync.Mutex // guards the fields below
	known     bool       // the level is
	last      bucket.Snapshot
	lastAt    time.Time
	cost      bucket.Tokens // of a request that states none
	points    []point       // since the last event
	drawn     time.Time     // the time of the newest point
	decisions []api.WatchedDecision
	dropped   int
	shown     *api.Bucket // by a look since the last event
}

// A point is a level at a time.
type point struct {
	at    time.Time
	level bucket.Tokens
}

func newCourse(now func() time.Time) *course { return &course{now: now} }

// decide notes a decision. The status of a limit in shadow mode has its own outcome: the
// request happens all the same.
func (c *course) decide(_ context.Context, d *mete.Decision, status *mete.Status) {
	one := api.WatchedDecision{
		Allowed: d.Allowed, Cost: api.Amount(status.Cost), Remaining: api.Amount(status.Room()),
		RetryAfter: api.Seconds(status.RetryAfter), Wait: api.Seconds(d.Wait), Degraded: d.Degraded,
	}
	for i := range d.Shadow {
		if status == &d.Shadow[i] {
			one.Shadow, one.Allowed = true, status.Allowed
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.decisions) == maxDecisions {
		c.dropped++
		return
	}
	now := c.now()
	one.At = api.Instant(bucket.At(now))
	c.decisions = append(c.decisions, one)
	if !d.Degraded { // the share of this process is not the store's bucket
		c.see(status.Snapshot, now)
	}
}

// look notes what the store shows of a bucket, for the next event.
func (c *course) look(b *mete.Bucket, shown api.Bucket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cost, c.shown = b.Cost, &shown
	c.see(b.Snapshot, c.now())
}

// frame returns an event with the decisions and the look since the last one, nil if there
// are none.
func (c *course) frame() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.decisions) == 0 && c.dropped == 0 && c.shown == nil {
		return nil
	}
	e := c.event(c.now())
	e.Bucket, c.shown = c.shown, nil
	frame, _ := sse.Frame("watch", "", e) // numbers always marshal
	return frame
}

// lose notes that the level is unknown from now on.
func (c *course) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.points, c.shown = false, nil, nil
}

// see notes a snapshot. The caller holds the lock.
func (c *course) see(s bucket.Snapshot, now time.Time) {
	c.draw(now)
	if n := len(c.points); n == 0 || c.points[n-1] != (point{now, s.Level()}) {
		c.points = append(c.points, point{now, s.Level()})
	}
	c.known, c.last, c.lastAt, c.drawn = true, s, now, now
}

// draw adds the points until now. The caller holds the lock.
func (c *course) draw(now time.Time) {
	if !c.known || !now.After(c.drawn) {
		return
	}
	steps := max((maxPoints-len(c.points))/2, 0)
	for i, p := range c.last.Later(c.drawn.Sub(c.lastAt)).Course(now.Sub(c.drawn), steps) {
		if i > 0 || len(c.points) == 0 {
			c.points = append(c.points, point{c.drawn.Add(p.After), p.Level})
		}
	}
	c.drawn = now
}

// undoTime is the time that a page offers to undo a reset, with a margin.
const undoTime = 5 * time.Minute

// missingAfter returns the tokens that a bucket would still miss later if nobody had reset
// it. A snapshot does not have the times of the costs in a sliding log: its tokens come back
// evenly.
func missingAfter(s bucket.Snapshot) []api.Point {
	if full := s.FullAfter(); s.Limit.Algorithm() == bucket.SlidingLog {
		return []api.Point{{Level: api.Amount(s.Missing())}, {After: full}}
	}
	var points []api.Point
	for _, p := range s.Course(undoTime, maxSteps) {
		missing := s.Later(p.After).Missing()
		points = append(points, api.Point{After: p.After, Level: api.Amount(missing)})
		if missing == 0 {
			break
		}
	}
	return points
}

// event returns all that is new, and begins anew. The caller holds the lock.
func (c *course) event(now time.Time) api.WatchEvent {
	e := api.WatchEvent{At: api.Instant(bucket.At(now)), Levels: []api.Point{}, Decisions: c.decisions, Dropped: c.dropped}
	if e.Decisions == nil {
		e.Decisions = []api.WatchedDecision{}
	}
	if c.known {
		c.draw(now)
		s := c.last.Later(now.Sub(c.lastAt))
		for _, p := range c.points {
			e.Levels = append(e.Levels, api.Point{After: p.at.Sub(now), Level: api.Amount(p.level)})
		}
		for i, p := range s.Course(levelsAhead, maxSteps) {
			if i > 0 || len(e.Levels) == 0 {
				e.Levels = append(e.Levels, api.Point{After: p.After, Level: api.Amount(p.Level)})
			}
		}
		e.RetryAfter, e.FullAfter = api.Seconds(s.RoomAfter(c.cost)), api.Seconds(s.FullAfter())
	}
	c.points, c.decisions, c.dropped = nil, nil, 0
	return e
}
