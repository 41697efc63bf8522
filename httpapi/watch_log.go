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
	// forecast is how far after an event its levels reach. A page draws 20 s ahead.
	forecast = 30 * time.Second

	// maxSteps bounds the forecast steps of a bucket that refills in steps. maxPoints bounds the past points of
	// one event. Beyond maxSteps, one line replaces the steps.
	maxSteps  = 100
	maxPoints = 2000

	// maxDecisions bounds the decisions in one event. The event counts the others.
	maxDecisions = 500
)

// A watchLog collects the level of a watched bucket and its decisions since the last event. The limit's own
// arithmetic fills in the level between two decisions. A watchLog is safe for concurrent use.
type watchLog struct {
	now func() time.Time

	mu        sync.Mutex // guards the fields below
	known     bool       // the level is known
	last      bucket.Snapshot
	lastAt    time.Time
	cost      bucket.Tokens // default cost of a request
	points    []point       // since the last event
	drawn     time.Time     // the time of the newest point
	decisions []api.WatchedDecision
	dropped   int
	shown     *api.Bucket // from a poll since the last event
}

type point struct {
	at    time.Time
	level bucket.Tokens
}

func newWatchLog(now func() time.Time) *watchLog { return &watchLog{now: now} }

// addDecision records a decision. For a shadow limit it records the limit's own outcome.
func (c *watchLog) addDecision(_ context.Context, d *mete.Decision, status *mete.Status) {
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
		c.addSnapshot(status.Snapshot, now)
	}
}

func (c *watchLog) addBucket(b *mete.BucketState, shown api.Bucket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cost, c.shown = b.Cost, &shown
	c.addSnapshot(b.Snapshot, c.now())
}

// frame returns an event with the new decisions and the new bucket state, or nil if there are none.
func (c *watchLog) frame() []byte {
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

func (c *watchLog) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.points, c.shown = false, nil, nil
}

// addSnapshot records a snapshot. The caller holds mu.
func (c *watchLog) addSnapshot(s bucket.Snapshot, now time.Time) {
	c.extend(now)
	if n := len(c.points); n == 0 || c.points[n-1] != (point{now, s.Level()}) {
		c.points = append(c.points, point{now, s.Level()})
	}
	c.known, c.last, c.lastAt, c.drawn = true, s, now, now
}

// extend adds the points until now. The caller holds mu.
func (c *watchLog) extend(now time.Time) {
	if !c.known || !now.After(c.drawn) {
		return
	}
	steps := max((maxPoints-len(c.points))/2, 0)
	for i, p := range c.last.After(c.drawn.Sub(c.lastAt)).LevelCurve(now.Sub(c.drawn), steps) {
		if i > 0 || len(c.points) == 0 {
			c.points = append(c.points, point{c.drawn.Add(p.After), p.Level})
		}
	}
	c.drawn = now
}

const undoTime = 5 * time.Minute

// missingAfter returns the tokens that the bucket would still lack over time without the reset. A snapshot of a
// sliding log does not contain the times of its costs, so its tokens come back evenly.
func missingAfter(s bucket.Snapshot) []api.Point {
	if full := s.FullAfter(); s.Limit.Algorithm() == bucket.AlgorithmSlidingLog {
		return []api.Point{{Level: api.Amount(s.Missing())}, {After: full}}
	}
	var points []api.Point
	for _, p := range s.LevelCurve(undoTime, maxSteps) {
		missing := s.After(p.After).Missing()
		points = append(points, api.Point{After: p.After, Level: api.Amount(missing)})
		if missing == 0 {
			break
		}
	}
	return points
}

// event returns everything that is new and resets the log. The caller holds mu.
func (c *watchLog) event(now time.Time) api.WatchEvent {
	e := api.WatchEvent{At: api.Instant(bucket.At(now)), Levels: []api.Point{}, Decisions: c.decisions, Dropped: c.dropped}
	if e.Decisions == nil {
		e.Decisions = []api.WatchedDecision{}
	}
	if c.known {
		c.extend(now)
		s := c.last.After(now.Sub(c.lastAt))
		for _, p := range c.points {
			e.Levels = append(e.Levels, api.Point{After: p.at.Sub(now), Level: api.Amount(p.level)})
		}
		for i, p := range s.LevelCurve(forecast, maxSteps) {
			if i > 0 || len(e.Levels) == 0 {
				e.Levels = append(e.Levels, api.Point{After: p.After, Level: api.Amount(p.Level)})
			}
		}
		e.RetryAfter, e.FullAfter = api.Seconds(s.RoomAfter(c.cost)), api.Seconds(s.FullAfter())
	}
	c.points, c.decisions, c.dropped = nil, nil, 0
	return e
}
