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
//	                                                Reset in seconds since 1970,
//	                                                rounded up but for 10 ms
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
// The legacy Reset is t, and on a denial the same as Retry-After, so that
// clients that go by it are spread as well.
//
// A decision the store had no part in has no such fields: nothing is known.
// Shadow limits are never shown.
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
)

// Config are the settings of a [Writer]. The zero Config is the default one.
type Config struct {
	// Dialects are the field dialects to send: any of "draft-11", "legacy" and
	// "x", or "none" alone. If empty, draft-11 and legacy.
	Dialects []string

	// DisableJitter sends clients the plain wait in Retry-After.
	DisableJitter bool

	// JitterKey keys the hash that spreads clients. Processes that answer the
	// same clients should share it; any length. If empty, it is made at random.
	JitterKey []byte

	// Now is the clock of the x dialect. If nil, [time.Now].
	Now func() time.Time
}

// A Writer says decisions in HTTP. It is safe for concurrent use.
type Writer struct {
	draft, legacy, x bool
	jitter           jitter
	now              func() time.Time

	items     sync.Map // *policy.Limit → *item
	itemCount atomic.Int64
}

// New checks config and returns its writer.
func New(config Config) (*Writer, error) {
	w := &Writer{now: config.Now}
	if w.now == nil {
		w.now = time.Now
	}
	if err := w.setDialects(config.Dialects); err != nil {
		return nil, err
	}
	w.jitter = jitter{off: config.DisableJitter, key: slices.Clone(config.JitterKey)}
	if len(w.jitter.key) == 0 {
		w.jitter.key = make([]byte, 32)
		rand.Read(w.jitter.key) // never fails
	}
	return w, nil
}

func (w *Writer) setDialects(names []string) error {
	if len(names) == 0 {
		w.draft, w.legacy = true, true
		return nil
	}
	for _, name := range names {
		switch name {
		case "draft-11":
			w.draft = true
		case "legacy":
			w.legacy = true
		case "x":
			w.x = true
		case "none":
			if len(names) > 1 {
				return fmt.Errorf("ratelimitfields: dialect %q goes with no other", name)
			}
		default:
			return fmt.Errorf("ratelimitfields: unknown dialect %q: known are draft-11, legacy, x and none", name)
		}
	}
	return nil
}

// Header sets all header fields of d: the RateLimit fields and, on a denial,
// Retry-After, X-RateLimit-Reason and Cache-Control. It replaces those that are
// there. client is what tells clients apart, of any number of parts: each one
// has the same jitter at all times.
func (w *Writer) Header(h http.Header, d *mete.Decision, client ...string) {
	w.header(h, d, w.wait(d, client))
}

// Deny answers a denied request: the fields of [Writer.Header], the status of
// [Status] and the body of a [Problem], which HEAD requests do not get.
func (w *Writer) Deny(rw http.ResponseWriter, r *http.Request, d *mete.Decision, client ...string) {
	retry := w.wait(d, client)
	w.header(rw.Header(), d, retry)
	problemOf(d, retry).Write(rw, r)
}

// Unavailable answers a request that could not be decided, without a decision.
func (w *Writer) Unavailable(rw http.ResponseWriter, r *http.Request, client ...string) {
	w.Deny(rw, r, &mete.Decision{Degraded: true, Reason: mete.ReasonStoreError}, client...)
}

func (w *Writer) header(h http.Header, d *mete.Decision, retry int64) {
	s := newSheet()
	defer s.release()
	if len(d.Limits) > 0 {
		if w.draft {
			w.writeDraft(s, d)
		}
		if w.legacy || w.x {
			w.writeTrios(s, d, retry)
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

// wait returns the seconds to be said in Retry-After, [never] for none. It
// is 0 where the request is allowed.
func (w *Writer) wait(d *mete.Decision, client []string) int64 {
	switch {
	case d.Allowed:
		return 0
	case d.Reason == mete.ReasonStoreError:
		return w.jitter.add(seconds(undecidedWait), client)
	case d.RetryAfter == bucket.Never:
		return never
	}
	return w.jitter.add(seconds(d.RetryAfter), client)
}

// seconds returns d in whole seconds, rounded up and at least 1.
func seconds(d time.Duration) int64 {
	return max(int64((d-1)/time.Second)+1, 1)
}

// unix returns t in Unix time, in whole seconds, rounded up.
func unix(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
