// SPDX-License-Identifier: Apache-2.0

package respapi

import (
	"errors"
	"os"
	"time"
)

// A client keeps its buffers while it is busy. A deadline per read would cost as much as a decision. The read
// deadline is therefore an alarm: it tests whether bytes arrived since the last one.

// busyTime is the time between the alarms of a busy client. A client that was silent for that long becomes idle.
const busyTime = 2 * time.Second

var longAgo = time.Unix(1, 0)

// quietDeadline returns when a client that sends nothing more is closed, or the zero time for never.
func (c *client) quietDeadline() time.Time {
	switch {
	case !c.admitted:
		return c.authBy
	case c.server.config.IdleTimeout == 0:
		return time.Time{}
	}
	return c.idleSince.Add(c.server.config.IdleTimeout)
}

func (c *client) busyDeadline() time.Time {
	if !c.admitted {
		return c.authBy
	}
	wait := busyTime
	if idle := c.server.config.IdleTimeout; idle > 0 {
		wait = min(wait, idle)
	}
	return time.Now().Add(wait)
}

// survive handles the error of a read. It returns false if the connection must end. The error is then no
// alarm, or the server shuts down, or the client has not authenticated in time, or was silent too long.
func (c *client) survive(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	now := time.Now()
	if c.server.closing.Load() {
		if c.last {
			return false
		}
		c.last = true
		c.setReadDeadline(now)
		return true
	}
	if c.active && c.admitted {
		c.active, c.idleSince = false, now
		c.setReadDeadline(c.busyDeadline())
		return true
	}
	end := c.quietDeadline()
	if !end.IsZero() && !now.Before(end) {
		return false
	}
	if c.busy != nil && c.busy.in.isEmpty() {
		c.busy.release()
		c.busy = nil
	}
	c.noteIdle(c.idleSince) // also with a part of a command
	c.setReadDeadline(end)
	return true
}

// drainTime is how long a connection is read after the begin of a shutdown, for commands that have already arrived.
const drainTime = 50 * time.Millisecond

// setReadDeadline sets the next alarm. During a shutdown the first alarm is now, and the last one soon.
func (c *client) setReadDeadline(t time.Time) {
	c.nc.SetReadDeadline(t)
	switch {
	case c.last:
		c.nc.SetReadDeadline(time.Now().Add(drainTime))
	case c.server.closing.Load():
		c.nc.SetReadDeadline(longAgo)
	}
}

// wake ends a read for a shutdown. The caller has set Server.closing.
func (c *client) wake() { c.nc.SetReadDeadline(longAgo) }
