// SPDX-License-Identifier: Apache-2.0

// Package ratelimitfields says a decision in HTTP: the RateLimit fields of every
// answer, and the status, Retry-After and problem body of a denial. All HTTP
// front doors speak through it.
//
// The fields of each dialect:
//
//	draft-11  RateLimit-Policy: "free";q=20;w=2     an item for each limit
//	          RateLimit: "free";r=19;t=2
//	legacy    RateLimit-Limit, -Remaining, -Reset   of the limit that decided
//	x         X-RateLimit-Limit, -Remaining, -Reset of the limit that decided,
//	                                                Reset as Unix time, rounded
//	                                                up but for 10 ms
//
// The limits of a rule that names dialects ([policy.Rule]) are in the fields of
// those, and in no others. The legacy and x fields are of the limit that decided
// among those that are in them: on a denial, among those of them that denied, and
// where none did the fields are left out, since what they said would not be why.
//
// q is what can be spent at once: the capacity or, of a window, its tokens, and of
// a leaky bucket the capacity and the queue. w is the seconds in which that comes
// back, rounded up and at least 1: of a window its length. r is the whole tokens
// that would be admitted now, and t the seconds in which no more than r may be
// used, rounded up and at least 1: tokens ÷ rate or, of a window or a bucket that
// refills in intervals, how long it takes until there is more. (A sliding log is
// taken to have nothing more before all of it is back.) Where r is 0, t is how
// long it takes until the first whole token is there. A limit that denied shows
// r=0 and its wait, rounded up. Where no wait helps, t and Reset are left out.
//
// A denial has one wait for the client: the longest of the limits that denied, rounded
// up, plus the jitter of that limit's rule. Retry-After, the legacy Reset, t of the limit
// with the longest wait, and the text of the problem body all have this value. So clients
// are spread whichever they read, and none returns too early. retry_after of the problem
// body is the exact wait, without jitter.
//
// The Reset of an allowed request is t in legacy. In x, Reset is the Unix time at which
// the bucket is full; on a denial, not before Retry-After has passed. A sliding window or
// log is no bucket: there the x Reset is the end of t.
//
// A decision the store had no part in has no such fields: nothing is known.
// Shadow limits are never shown.
//
// Where a limit of which little is left says so (staged_actions), X-RateLimit-Warning
// has an item for it, with how much of it is used at least, in percent:
// "daily";used=80. It is left out of the limits that are in no field.
package ratelimitfields

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/dialect"
)

// Config are the settings of a [Writer]. The zero Config is the default one.
type Config struct {
	// Dialects are the field dialects to send of limits whose rule names none: any
	// of "draft-11", "legacy" and "x", or "none" alone. If empty, draft-11 and legacy.
	Dialects []string

	// DisableJitter sends clients the plain wait where the rule sets no jitter.
	// Otherwise a wait is up to 50% longer.
	DisableJitter bool

	// ExactWaits sends clients the plain wait, also where the rule sets jitter: for
	// protocols whose clients spread themselves.
	ExactWaits bool

	// IgnoreRules makes the settings here hold whatever rules say: for those who are
	// told of a denial, and not themselves denied.
	IgnoreRules bool

	// JitterKey keys the hash that spreads clients. Processes that answer the
	// same clients should share it; any length. If empty, it is made at random.
	JitterKey []byte

	// Now is the clock of the x dialect. If nil, the wall clock.
	Now func() bucket.Instant
}

// A Writer says decisions in HTTP. It is safe for concurrent use.
type Writer struct {
	dialects    dialect.Set // of limits whose rule names none
	percent     int         // of jitter, where the rule says nothing
	ignoreRules bool
	exact       bool // waits, also where the rule sets jitter
	jitter      jitter
	now         func() time.Time

	items     sync.Map // *policy.Limit → *item
	itemCount atomic.Int64
}

// New checks config and returns its writer.
func New(config Config) (*Writer, error) {
	w := &Writer{now: time.Now, percent: defaultJitter, ignoreRules: config.IgnoreRules, exact: config.ExactWaits}
	if config.Now != nil {
		w.now = func() time.Time { return config.Now().Time() }
	}
	if config.DisableJitter || config.ExactWaits {
		w.percent = 0
	}
	w.dialects = dialect.Draft11 | dialect.Legacy
	if len(config.Dialects) > 0 {
		var err error
		if w.dialects, err = dialect.Parse(config.Dialects...); err != nil {
			return nil, fmt.Errorf("ratelimitfields: %w", err)
		}
	}
	w.jitter = jitter{key: slices.Clone(config.JitterKey)}
	if len(w.jitter.key) == 0 {
		w.jitter.key = make([]byte, 32)
		rand.Read(w.jitter.key) // never fails
	}
	return w, nil
}

// Header sets all header fields of d: the RateLimit fields and, on a denial,
// Retry-After, X-RateLimit-Reason and Cache-Control. It replaces those that are
// there. client identifies the client, in any number of parts: the same parts have the
// same jitter at all times.
func (w *Writer) Header(h http.Header, d *mete.Decision, client ...string) {
	w.header(h, d, w.wait(d, client))
}

// Deny answers a denied request: the fields of [Writer.Header], the status of
// [Status] and the body of a [Problem], which HEAD requests do not get.
func (w *Writer) Deny(rw http.ResponseWriter, r *http.Request, d *mete.Decision, client ...string) {
	retry := w.wait(d, client)
	w.header(rw.Header(), d, retry)
	Write(rw, r, problemOf(d, retry))
}

// Unavailable answers a request that could not be decided, without a decision.
func (w *Writer) Unavailable(rw http.ResponseWriter, r *http.Request, client ...string) {
	w.Deny(rw, r, &mete.Decision{Degraded: true, Reason: mete.ReasonStoreError}, client...)
}

func (w *Writer) header(h http.Header, d *mete.Decision, retry int64) {
	s := newSheet()
	defer s.release()
	if len(d.Limits()) > 0 {
		first := d.Decider()
		w.writeDraft(s, d, first, retry)
		w.writeTrios(s, d, first, retry)
		if d.Allowed {
			w.writeWarning(s, d)
		}
	}
	if !d.Allowed {
		if retry != never {
			s.intField(retryAfter, retry)
		}
		if d.Reason != "" {
			s.textField(reason, d.Reason)
		}
		s.textField(cacheControl, "no-store") // RFC 6585, 4
	}
	s.set(h)
}

// never is the Retry-After of a denial that no wait helps: there is none.
const never = -1

// undecidedWait is the wait of those whose request could not be decided. It is
// not known when the store is back.
const undecidedWait = time.Second

// ExactWait returns the wait of a denial without jitter, [bucket.Never] where no wait helps.
func ExactWait(d *mete.Decision) time.Duration {
	if d.Reason == mete.ReasonStoreError {
		return undecidedWait
	}
	return d.RetryAfter
}

// wait returns the value of Retry-After in seconds, [never] for none. All fields of the
// answer and the text of its problem body use this one value. It is 0 where the request
// is allowed.
func (w *Writer) wait(d *mete.Decision, client []string) int64 {
	exact := ExactWait(d)
	switch {
	case d.Allowed:
		return 0
	case exact == bucket.Never:
		return never
	case d.Reason == mete.ReasonBlocked:
		return wholeSeconds(exact) // one client, until the block expires
	case d.Reason == mete.ReasonStoreError:
		return w.jitter.add(wholeSeconds(exact), w.percent, client)
	}
	return w.jitter.add(wholeSeconds(exact), w.jitterOf(d.Decider()), client)
}

// jitterOf returns the percentage of jitter for what decider denied; nil stands for
// a denial that is no limit's.
func (w *Writer) jitterOf(decider *mete.Status) int {
	if decider != nil && decider.Rule != nil && !w.ignoreRules && !w.exact {
		if percent, ok := decider.Rule.Jitter.Percent(); ok {
			return percent
		}
	}
	return w.percent
}

// shows reports whether a limit is in the fields of a dialect.
func (w *Writer) shows(s *mete.Status, dialect dialect.Set) bool {
	if s.Rule != nil && s.Rule.Headers != 0 && !w.ignoreRules {
		return s.Rule.Headers.Has(dialect)
	}
	return w.dialects.Has(dialect)
}

// decider returns the limit that decided d among those that are in the fields of a
// dialect; first is that among all. It is nil where there is none.
func (w *Writer) decider(d *mete.Decision, first *mete.Status, dialect dialect.Set) *mete.Status {
	if first == nil || w.shows(first, dialect) {
		return first
	}
	var limits []mete.Status
	for i := range d.Limits() {
		if w.shows(&d.Limits()[i], dialect) {
			limits = append(limits, d.Limits()[i])
		}
	}
	if len(limits) == 0 {
		return nil
	}
	shown := mete.Decision{Allowed: d.Allowed}.WithLimits(limits...)
	return shown.Decider()
}

// wholeSeconds returns d in whole seconds, rounded up and at least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(int64((d-1)/time.Second)+1, 1)
}

// unix returns t in Unix time, in whole seconds, rounded up.
func unix(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
