// SPDX-License-Identifier: Apache-2.0

package pacer

import (
	"math"
	"time"

	"github.com/metehq/mete/internal/ratelimitfields"
)

const (
	// shortestSpread is the least time over which what is left is spent: faster
	// corrections would act on what is not yet known to have changed.
	shortestSpread = 500 * time.Millisecond

	// shortestEnd is the same at the end of a window, when there is nothing to be
	// learned any more: rather than in a rush, the rest goes unused.
	shortestEnd = 20 * time.Millisecond

	// slack is how late an answer may come that speaks of the same end of a window.
	slack = 250 * time.Millisecond

	// almostOne is one after rounding.
	almostOne = 1 - 1e-6

	// startBurst is the part of what is left that an idle client may send at once.
	startBurst = 0.1

	// restParts is the share of a limit that is left alone, as 1/restParts: what
	// comes back is spent at the rate at which it comes, not all there is.
	restParts = 400

	// maxSharers bounds how much less than an even share of what is left a client
	// takes because others take the rest.
	maxSharers = 16
)

// A quota is what is known of one announced limit.
type quota struct {
	name  string
	limit float64       // the most there can be; 0 where not known
	span  time.Duration // over which it comes back; 0 where not known

	longest time.Duration // that it had to last

	// The last answer said that after the request seq, at the time at, there was
	// remaining, to last until bound.
	seq       uint64
	at, bound time.Time
	remaining float64
	rolled    time.Time // when bound passed without an answer
	rolling   bool      // bound moves on without the quota coming back at once

	began    time.Time // at the latest: the window, where the quota comes back at once
	unsteady bool      // the windows do not follow one another evenly

	refill   refill
	margin   float64 // kept back beside the rest: grows with refusals
	refusals uint64  // answers since the last allowed one that were refused
	probe    bool    // one request goes to see, whatever is left
	paused   bool    // there was no answer since a refusal
	quiet    int     // answers that did not mention the limit

	credit   float64 // may be sent at once
	creditAt time.Time
}

// level is what should be left of the quota after sent requests.
func (q *quota) level(now time.Time, sent uint64) float64 {
	level := q.remaining - float64(int64(sent-q.seq))
	if since := now.Sub(q.at); since > 0 {
		level += q.refill.rate * since.Seconds()
	}
	if q.limit > 0 {
		level = min(level, q.limit)
	}
	return level
}

// sure is the level with no more than what has always come back of late.
func (q *quota) sure(now time.Time, sent uint64) float64 {
	level := q.remaining - float64(int64(sent-q.seq))
	if since := now.Sub(q.at); since > 0 {
		level += q.refill.least() * since.Seconds()
	}
	return level
}

// rest is what is kept back.
func (q *quota) rest() float64 {
	if q.stepped() {
		return q.margin
	}
	return min(max(0.25, q.limit/restParts), 1) + q.margin
}

// stepped reports whether the quota comes back all at once at its bound, as far
// as can be seen: what came back while it was being used is next to nothing.
func (q *quota) stepped() bool {
	return !q.rolling && q.refill.rate*q.bound.Sub(q.at).Seconds() < (q.remaining+1)/4
}

// rate is how fast the quota should be spent, before what is left is shared out.
// That is how fast it comes back; but where that wavers about what is announced,
// as it does in a window that slides over an uneven past, and there is enough left
// to make up for it, it is what is announced, lest the future be as uneven.
func (q *quota) rate(level float64) float64 {
	measured := q.refill.rate
	if q.limit <= 0 || q.span <= 0 || q.stepped() {
		return measured
	}
	announced := q.limit / q.span.Seconds()
	if measured > 1.25*announced {
		return measured // the window is rounded up
	}
	enough := min(max((level-q.rest())/max(4, q.limit/20), 0), 1)
	return measured + enough*(announced-measured)
}

// pace is how many requests a second should be sent.
func (q *quota) pace(now time.Time, sent uint64) float64 {
	spread := max(min(q.bound.Sub(now), q.span), shortestSpread)
	if q.stepped() {
		spread = max(q.bound.Sub(now), q.span/50, shortestEnd)
	}
	level := q.level(now, sent)
	rate, excess := q.rate(level), (level-q.rest())/spread.Seconds()
	pace := max(rate+excess, excess/maxSharers, rate/2)
	if q.rolling {
		pace = min(pace, q.limit/q.span.Seconds()) // what goes in a rush comes back in one
	}
	return pace
}

// delay is how long the next request has to wait for this limit.
func (q *quota) delay(now time.Time, sent uint64) time.Duration {
	look := q.at.Add(LongestPause)
	if q.rolled.After(q.at) {
		look = q.rolled.Add(LongestPause)
	}
	if !now.Before(q.bound) || !now.Before(look) {
		q.roll(now, sent)
	}
	pace, level := q.pace(now, sent), q.level(now, sent)
	if since := now.Sub(q.creditAt); since > 0 {
		q.credit = min(q.credit+pace*since.Seconds(), 1+startBurst*max(level, 0))
	}
	q.creditAt = now
	toBound := max(q.bound.Sub(now), time.Millisecond)
	switch {
	case q.probe:
		return 0
	case q.stepped() && level < almostOne:
		return toBound
	case !q.stepped() && level < almostOne && q.sure(now, sent) < almostOne:
		// What comes back is expected, not announced.
		if low := q.refill.least(); low > 0 {
			if wait := (1 - q.sure(now, sent)) / low; wait < toBound.Seconds() {
				return max(time.Duration(wait*float64(time.Second)), time.Microsecond)
			}
		}
		return toBound
	case q.credit >= almostOne:
		return 0
	case pace <= 0:
		return toBound
	}
	wait := math.Ceil((1 - q.credit) / pace * 1e6) // µs
	if wait >= float64(toBound/time.Microsecond) {
		return toBound
	}
	return max(time.Duration(wait)*time.Microsecond, time.Microsecond)
}

func (q *quota) spend() {
	q.credit--
	q.probe = false
}

// roll goes on where what was announced has passed and no answer said what comes
// next. If something is left, it is spent as if the limit were as before; if not,
// one request goes to see.
func (q *quota) roll(now time.Time, sent uint64) {
	level := q.level(now, sent)
	q.probe, q.rolled = true, now
	span := q.span
	if q.limit > 0 {
		span = time.Duration(float64(span) * min(max(level, 1)/q.limit, 1))
	}
	q.bound = now.Add(max(span, firstAnswer))
}

// learn takes in what the answer to the allowed request seq says.
func (q *quota) learn(now time.Time, seq, sent uint64, l *ratelimitfields.Announced) {
	if seq <= q.seq {
		return // an older answer than the last one
	}
	if q.limit = float64(l.Quota); l.Quota == 0 {
		q.limit = max(q.limit, float64(l.Remaining))
	}
	remaining := float64(l.Remaining)
	switch {
	case q.at.IsZero():
		q.credit, q.creditAt = 1, now
	case !q.paused: // after a pause it may be another window
		q.refill.add(now.Sub(q.at), remaining-q.remaining+float64(seq-q.seq)-float64(q.refusals))
	}
	q.paused = false
	q.setBound(now, seq, l)
	q.remaining, q.seq, q.at = remaining, seq, now
	q.refusals, q.probe = 0, false
	q.margin *= 0.995
}

// setBound takes in how long what is left has to last. Seconds are rounded up, so
// that the end of a window is known only to the second; but all answers within a
// window speak of the same end, and the earliest of them is the closest. The next
// window ends as much later as it is long.
func (q *quota) setBound(now time.Time, seq uint64, l *ratelimitfields.Announced) {
	q.setSpan(l)
	span := l.Reset
	if span == 0 {
		span = max(q.span, time.Second)
	}
	latest := now.Add(span)
	began := float64(l.Remaining) > q.level(now, seq)+1.5
	if !began && q.stepped() && !q.bound.IsZero() && q.bound.After(now) && q.bound.Before(latest.Add(-time.Second-slack)) {
		q.rolling = true
	}
	if !q.stepped() {
		q.bound = latest
		return
	}
	known := q.bound
	if began { // another window has begun
		q.began = q.beginning(now)
		known = q.began.Add(q.span)
	}
	if q.bound = latest; known.After(now) && known.Before(latest) && known.After(latest.Add(-time.Second-slack)) {
		q.bound = known
	}
}

// setSpan takes in over which time all of the quota comes back: as announced, or
// else the longest that it ever had to last. Where that is always the whole window
// it is known better: rounded, but never down.
func (q *quota) setSpan(l *ratelimitfields.Announced) {
	q.longest = max(q.longest, (l.Reset + time.Second - 1).Truncate(time.Second))
	switch {
	case l.Window > 0:
		q.span = l.Window
	case q.rolling && l.Reset > q.longest*3/4:
		q.span = min(q.span, (l.Reset + time.Second - 1).Truncate(time.Second))
	case !q.rolling:
		q.span = q.longest
	}
}

// beginning is when the window began of which an answer is the first one seen: a
// whole number of windows after the last that is known, or else just now.
func (q *quota) beginning(now time.Time) time.Time {
	if q.began.IsZero() || q.unsteady || q.span <= 0 {
		return now
	}
	windows := (now.Sub(q.began) + q.span/8) / q.span
	if guess := q.began.Add(windows * q.span); guess.Before(now) && now.Sub(guess) < q.span/8 {
		return guess
	}
	return now
}

// refused takes in a refusal of the request seq. Nothing more will be sent before
// until.
func (q *quota) refused(now time.Time, seq, sent uint64, l *ratelimitfields.Announced, until time.Time) {
	q.refusals++
	if seq <= q.seq || l.Remaining > 0 {
		return // it was sent before another refusal, or another limit refused
	}
	if l.Quota > 0 {
		q.limit = float64(l.Quota)
	}
	if q.stepped() {
		q.began, q.unsteady = time.Time{}, true
	}
	q.margin = min(max(2*q.margin, 1), max(q.limit/16, 1))
	q.refill.rate *= 0.9
	q.refill.restart()
	q.paused = true
	q.remaining, q.seq, q.at, q.probe = 0, sent, until, true
	q.credit, q.creditAt = 1, until
	q.bound = until.Add(time.Second)
}
