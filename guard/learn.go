// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// answered is a take that the store has answered.
type answered struct {
	charges []mete.Charge
	snaps   []bucket.Snapshot
	allowed bool
	mode    mete.Mode
	sent    time.Duration
}

// isPlain reports whether a take is one that the denials know about: all that is
// there, or nothing.
func isPlain(mode mete.Mode) bool { return mode.MaxWait == 0 && !mode.UpTo }

// learn remembers the buckets of a denied take. Of others it brings those up to
// date that are remembered. now is asked only where there is something to do.
func (d *denials) learn(a *answered, now func() time.Duration) {
	if !a.allowed && a.mode.MaxWait != 0 {
		return // the bucket is as it was, and the wait another
	}
	// A dry run opens no account for a limit that the bucket has not had yet, so what it
	// shows is not what the store will count from.
	denied := !a.allowed && isPlain(a.mode) && !a.mode.DryRun
	var received, until time.Duration
	if denied {
		received = now()
		if until = a.until(d.maxAge); until <= received {
			return // its time has come already
		}
	}
	for i := range a.charges {
		s := d.setOf(a.charges[i].Key)
		if !denied {
			if !d.live(s, a.sent) {
				continue
			}
			if received == 0 {
				received = now()
			}
		}
		d.see(s, a, sighting{a.charges[i].Key, a.snaps[i], a.sent, received, until})
	}
}

// until is from when on the store is asked again about a denied take: when the
// last of its buckets may admit it.
func (a *answered) until(maxAge time.Duration) time.Duration {
	var wait time.Duration
	for i := range a.snaps {
		wait = max(wait, a.snaps[i].RetryAfter)
	}
	return a.sent + min(wait, maxAge)
}

// see replaces the sighting of a bucket by a new one, which is to be remembered
// if it is of use until then.
func (d *denials) see(s *set, a *answered, n sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.sent <= s.given {
		return // it may have been before that
	}
	switch old := s.find(n.key); {
	case old != nil && a.allowed && a.mode.ID != "" && !a.mode.DryRun:
		d.drop(s, old) // it may be what was answered a minute ago
	case old != nil:
		old.snap, old.sent, old.received = n.snap, n.sent, n.received
		old.until = min(max(old.until, n.until), n.sent+d.maxAge)
		s.until.Store(max(s.until.Load(), int64(old.until)))
	case n.until > 0:
		n.key = strings.Clone(n.key) // the caller's may be part of something large
		d.add(s, n)
		s.until.Store(max(s.until.Load(), int64(n.until)))
	}
}

// add finds a place for a sighting: if need be, that of the one which ends first.
func (d *denials) add(s *set, n sighting) {
	if len(s.seen) < ways {
		if s.seen == nil {
			s.seen = make([]sighting, 0, ways)
		}
		s.seen = append(s.seen, n)
		d.keys.Add(1)
		return
	}
	first := &s.seen[0]
	for i := range s.seen {
		if s.seen[i].until < first.until {
			first = &s.seen[i]
		}
	}
	*first = n
}

// drop forgets a sighting. The set is locked.
func (d *denials) drop(s *set, old *sighting) {
	last := len(s.seen) - 1
	*old, s.seen[last] = s.seen[last], sighting{}
	s.seen = s.seen[:last]
	if d.keys.Add(-1); last == 0 {
		s.until.Store(0)
	}
}

// forget forgets a bucket that has been given tokens, and whatever was asked about
// it before and is answered later.
func (d *denials) forget(key string, now time.Duration) {
	s := d.setOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = max(s.given, now)
	if old := s.find(key); old != nil {
		d.drop(s, old)
	}
}
