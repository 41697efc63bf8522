// SPDX-License-Identifier: Apache-2.0

package pacer

import (
	"math"
	"time"

	"github.com/metehq/mete/internal/ratelimitfields"
)

const (
	// shortestSpread is the shortest time over which a remainder is spent. Faster corrections would act on
	// stale information.
	shortestSpread = 500 * time.Millisecond

	// shortestEnd is shortestSpread at the end of a window, where waiting yields no information. The rest goes
	// unused instead of being spent in a burst.
	shortestEnd = 20 * time.Millisecond

	// slack is the largest delay of an answer that still belongs to the same end of a window.
	slack = 250 * time.Millisecond

	// almostOne is 1 minus rounding errors.
	almostOne = 1 - 1e-6

	// startBurst is the part of the remainder that an idle client may send in one burst.
	startBurst = 0.1

	// restParts is the inverse of the share of a limit that stays unused. The reserve lets refills be spent at their
	// own rate.
	restParts = 400

	// maxSharers bounds how far a client's share of the remainder shrinks when other clients spend it.
	maxSharers = 16
)

// A quota is the knowledge about one announced limit.
type quota struct {
	name  string
	limit float64       // maximum; 0 if unknown
	span  time.Duration // refill time of the whole limit; 0 if unknown

	longest time.Duration // longest announced time to reset

	// From the last answer: after the request seq, at the time at, there was remaining until bound.
	seq        uint64
	at, bound  time.Time
	remaining  float64
	extendedAt time.Time // when bound passed without an answer
	sliding    bool      // a sliding window: bound moves, and tokens return gradually

	began     time.Time // latest start of the current fixed window
	irregular bool      // the windows are not contiguous

	refill      refill
	margin      float64 // extra reserve, grows with refusals.
	refusals    uint64  // refusals since the last allowed answer.
	probe       bool    // one request may probe the server
	paused      bool    // no answer since a refusal.
	unmentioned int     // consecutive answers without the limit

	credit   float64 // requests that may be sent immediately
	creditAt time.Time
}

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

// guaranteedLevel returns the estimated remainder with the lowest recent refill rate.
func (q *quota) guaranteedLevel(now time.Time, sent uint64) float64 {
	level := q.remaining - float64(int64(sent-q.seq))
	if since := now.Sub(q.at); since > 0 {
		level += q.refill.minRate() * since.Seconds()
	}
	return level
}

func (q *quota) reserve() float64 {
	if q.refillsAtOnce() {
		return q.margin
	}
	return min(max(0.25, q.limit/restParts), 1) + q.margin
}

// refillsAtOnce reports whether the quota seems to refill all at once at its bound, because almost nothing
// returned while it was being used.
func (q *quota) refillsAtOnce() bool {
	return !q.sliding && q.refill.rate*q.bound.Sub(q.at).Seconds() < (q.remaining+1)/4
}

// rate returns the spending rate apart from the remainder: the measured refill rate. In a window that slides
// over uneven traffic, the refill is uneven too. If enough is left, rate then moves towards the announced rate
// to even out future refills.
func (q *quota) rate(level float64) float64 {
	measured := q.refill.rate
	if q.limit <= 0 || q.span <= 0 || q.refillsAtOnce() {
		return measured
	}
	announced := q.limit / q.span.Seconds()
	if measured > 1.25*announced {
		return measured // the announced window is rounded up
	}
	enough := min(max((level-q.reserve())/max(4, q.limit/20), 0), 1)
	return measured + enough*(announced-measured)
}

func (q *quota) pace(now time.Time, sent uint64) float64 {
	spread := max(min(q.bound.Sub(now), q.span), shortestSpread)
	if q.refillsAtOnce() {
		spread = max(q.bound.Sub(now), q.span/50, shortestEnd)
	}
	level := q.level(now, sent)
	rate, excess := q.rate(level), (level-q.reserve())/spread.Seconds()
	pace := max(rate+excess, excess/maxSharers, rate/2)
	if q.sliding {
		pace = min(pace, q.limit/q.span.Seconds()) // a burst of spending causes a burst of refills
	}
	return pace
}

func (q *quota) delay(now time.Time, sent uint64) time.Duration {
	look := q.at.Add(LongestPause)
	if q.extendedAt.After(q.at) {
		look = q.extendedAt.Add(LongestPause)
	}
	if !now.Before(q.bound) || !now.Before(look) {
		q.extend(now, sent)
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
	case q.refillsAtOnce() && level < almostOne:
		return toBound
	case !q.refillsAtOnce() && level < almostOne && q.guaranteedLevel(now, sent) < almostOne:
		// The refill is an estimate, not announced.
		if low := q.refill.minRate(); low > 0 {
			if wait := (1 - q.guaranteedLevel(now, sent)) / low; wait < toBound.Seconds() {
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

// extend continues after the announced window has passed without an answer. It assumes the same limit for the
// remainder. If nothing is left, one request probes the server.
func (q *quota) extend(now time.Time, sent uint64) {
	level := q.level(now, sent)
	q.probe, q.extendedAt = true, now
	span := q.span
	if q.limit > 0 {
		span = time.Duration(float64(span) * min(max(level, 1)/q.limit, 1))
	}
	q.bound = now.Add(max(span, firstAnswer))
}

func (q *quota) learn(now time.Time, seq, sent uint64, l *ratelimitfields.Announced) {
	if seq <= q.seq {
		return // older than the last answer
	}
	if q.limit = float64(l.Quota); l.Quota == 0 {
		q.limit = max(q.limit, float64(l.Remaining))
	}
	remaining := float64(l.Remaining)
	switch {
	case q.at.IsZero():
		q.credit, q.creditAt = 1, now
	case !q.paused: // after a pause the window may be another one
		q.refill.add(now.Sub(q.at), remaining-q.remaining+float64(seq-q.seq)-float64(q.refusals))
	}
	q.paused = false
	q.setBound(now, seq, l)
	q.remaining, q.seq, q.at = remaining, seq, now
	q.refusals, q.probe = 0, false
	q.margin *= 0.995
}

// setBound updates the end of the window. Seconds are rounded up, so each answer contains the end only to the
// second. All answers of a window refer to the same end, so the earliest bound is the closest. The next window ends
// one span later.
func (q *quota) setBound(now time.Time, seq uint64, l *ratelimitfields.Announced) {
	q.setSpan(l)
	span := l.Reset
	if span == 0 {
		span = max(q.span, time.Second)
	}
	latest := now.Add(span)
	began := float64(l.Remaining) > q.level(now, seq)+1.5
	if !began && q.refillsAtOnce() && !q.bound.IsZero() && q.bound.After(now) && q.bound.Before(latest.Add(-time.Second-slack)) {
		q.sliding = true
	}
	if !q.refillsAtOnce() {
		q.bound = latest
		return
	}
	known := q.bound
	if began { // a new window started
		q.began = q.windowStart(now)
		known = q.began.Add(q.span)
	}
	if q.bound = latest; known.After(now) && known.Before(latest) && known.After(latest.Add(-time.Second-slack)) {
		q.bound = known
	}
}

// setSpan updates the refill time of the whole quota: the announced window, or the longest time to reset so far. In
// a sliding window, the time to reset is always the whole window, rounded up. The shortest one is then the most
// precise.
func (q *quota) setSpan(l *ratelimitfields.Announced) {
	q.longest = max(q.longest, (l.Reset + time.Second - 1).Truncate(time.Second))
	switch {
	case l.Window > 0:
		q.span = l.Window
	case q.sliding && l.Reset > q.longest*3/4:
		q.span = min(q.span, (l.Reset + time.Second - 1).Truncate(time.Second))
	case !q.sliding:
		q.span = q.longest
	}
}

// windowStart returns the start of a window from its first answer: a whole number of windows after the last
// known start, or now.
func (q *quota) windowStart(now time.Time) time.Time {
	if q.began.IsZero() || q.irregular || q.span <= 0 {
		return now
	}
	windows := (now.Sub(q.began) + q.span/8) / q.span
	if guess := q.began.Add(windows * q.span); guess.Before(now) && now.Sub(guess) < q.span/8 {
		return guess
	}
	return now
}

// recordRefusal records a refusal of the request seq. Nothing is sent before until.
func (q *quota) recordRefusal(now time.Time, seq, sent uint64, l *ratelimitfields.Announced, until time.Time) {
	q.refusals++
	if seq <= q.seq || l.Remaining > 0 {
		return // sent before another refusal, or refused by another limit
	}
	if l.Quota > 0 {
		q.limit = float64(l.Quota)
	}
	if q.refillsAtOnce() {
		q.began, q.irregular = time.Time{}, true
	}
	q.margin = min(max(2*q.margin, 1), max(q.limit/16, 1))
	q.refill.rate *= 0.9
	q.refill.restart()
	q.paused = true
	q.remaining, q.seq, q.at, q.probe = 0, sent, until, true
	q.credit, q.creditAt = 1, until
	q.bound = until.Add(time.Second)
}
