// SPDX-License-Identifier: Apache-2.0

package respapi

import "time"

// Redis never closes an idle client by default, and some clients treat the end of an idle connection as a failure.
// The server therefore closes an idle client only if it needs the place.

// replaceIdle is how long a client must have been idle before the server may replace it by a new one.
const replaceIdle = 5 * time.Minute

// noteIdle publishes since when the client has been idle. The zero time means that it is busy.
func (c *client) noteIdle(since time.Time) {
	if since.IsZero() {
		c.idle.Store(0)
		return
	}
	c.idle.Store(since.UnixNano())
}

// replaceLongestIdle closes the client that has been idle for the longest time, if that is at least replaceIdle. It
// reports whether there is such a client. The caller holds s.mu.
func (s *Server) replaceLongestIdle(now time.Time) bool {
	if now.Before(s.nextSearch) { // a flood of connections must not cause a search each
		return false
	}
	var longest *client
	oldest := now.UnixNano()
	for c := range s.clients {
		if since := c.idle.Load(); since > 0 && since < oldest {
			longest, oldest = c, since
		}
	}
	if end := time.Unix(0, oldest).Add(replaceIdle); now.Before(end) {
		s.nextSearch = minTime(end, now.Add(replaceIdle-maxAlarm))
		return false
	}
	s.drop(longest)
	s.replaced.Add(1)
	longest.nc.Close()
	return true
}

// maxAlarm bounds the time from the last command of a client until its noteIdle.
const maxAlarm = 2 * busyTime

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// drop removes a client from the list, and frees its place. The caller holds s.mu.
func (s *Server) drop(c *client) {
	if _, ok := s.clients[c]; ok {
		delete(s.clients, c)
		s.connected.Add(-1)
	}
}
