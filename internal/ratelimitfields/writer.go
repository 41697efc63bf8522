// SPDX-License-Identifier: Apache-2.0

// Package ratelimitfields writes decisions as HTTP: the RateLimit fields of every response, and the status,
// Retry-After and problem body of a denial. All HTTP adapters use it.
//
// The fields of each dialect:
//
//	draft-11  RateLimit-Policy: "free";q=20;w=2     an item for each limit
//	          RateLimit: "free";r=19;t=2
//	legacy    RateLimit-Limit, -Remaining, -Reset   for the deciding limit
//	x         X-RateLimit-Limit, -Remaining, -Reset for the deciding limit,
//	                                                Reset as Unix time, rounded
//	                                                up, less 10 ms
//
// If a rule sets dialects ([policy.Rule]), its limits appear only in these dialects. The legacy and x fields
// describe the limit that decided among the limits in that dialect. For a denial, that is a limit that denied; if
// none of the dialect's limits denied, the fields are omitted, because they would be misleading.
//
// q is the most that can be spent at once: the capacity or the tokens of a window. For a leaky bucket it includes
// the queue. w is the time in seconds in which q is restored, rounded up and at least 1: the length of a window.
//
// r is the number of whole tokens left. t is the number of seconds for which r must last, rounded up and at least
// 1. It is tokens ÷ rate or, for windows and intervals, the time until the next refill. (A sliding log counts as
// refilled only when it is empty.) If r is 0, t is the time until the first whole token. A limit that denied has
// r=0 and its wait, rounded up. If no wait helps, t and Reset are omitted.
//
// For a concurrency limit, q is the number of slots and r the number of free ones. It has no w, because no time restores the
// slots. t is the time until the next lease ends. A slot may be free earlier, and later if its request renews it. While
// all slots are free, t and Reset are omitted.
//
// A denial has one wait for the client: the longest wait of the limits that denied, rounded up, plus the jitter
// of that limit's rule. Retry-After, the legacy Reset, t of the limit with the longest wait, and the text of the
// problem body all have this value. Clients are spread whichever value they read, and none returns too early.
// retry_after in the problem body is the exact wait without jitter.
//
// For an allowed request, Reset is t in legacy, and in x the Unix time at which the bucket is full. On a denial,
// the x Reset is not before Retry-After has passed. For a sliding window or log, the x Reset is the end of t.
//
// A decision without the store has no fields, because the state is unknown. Shadow limits never appear.
//
// Under a limit of the tokens of a language model, X-RateLimit-Limit-Tokens, -Remaining-Tokens and -Reset-Tokens describe
// the limit of tokens with the fewest left. The same fields with -Requests describe the limit of requests. Reset
// is the time until the bucket is full, such as 6m0s. OpenAI's API defines these fields.
//
// If a limit reaches a warning stage (staged_actions), X-RateLimit-Warning has an item with the percentage that
// is used at least: "daily";used=80. Limits that are in no field have no item.
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
	"github.com/metehq/mete/internal/denialbody"
	"github.com/metehq/mete/internal/dialect"
)

// Config holds the settings of a [Writer]. The zero Config is valid.
type Config struct {
	// Dialects are the default field dialects: any of "draft-11", "legacy" and "x", or only "none". Empty means
	// draft-11 and legacy.
	Dialects []string

	// DisableJitter disables jitter for rules that do not set it. Otherwise a wait is up to 50% longer.
	DisableJitter bool

	// ExactWaits disables all jitter, for protocols in which clients add their own.
	ExactWaits bool

	// IgnoreRules ignores the dialects and jitter of rules, for callers that act for another client.
	IgnoreRules bool

	// JitterKey is the key of the hash that computes jitter. Processes with the same clients should share it. It
	// has any length. If empty, it is random.
	JitterKey []byte

	// Now is the clock of the x dialect. If nil, it is the wall clock.
	Now func() bucket.Instant
}

// A Writer writes decisions as HTTP. It is safe for concurrent use.
type Writer struct {
	dialects    dialect.Set // for rules that set no dialects
	percent     int         // jitter for rules that set none
	ignoreRules bool
	exact       bool // ignore the jitter of rules
	jitter      jitter
	now         func() time.Time

	items     sync.Map // *policy.Limit → *item
	itemCount atomic.Int64
}

// New returns a writer for config.
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

// Header sets all header fields of d: the RateLimit fields and, on a denial, Retry-After, X-RateLimit-Reason and
// Cache-Control. It replaces existing fields. The values in client identify the client: equal values always have
// the same jitter.
func (w *Writer) Header(h http.Header, d *mete.Decision, client ...string) {
	w.header(h, d, w.wait(d, client))
}

// Deny responds to a denied request with the fields of [Writer.Header] and the status of [Writer.Status]. The body is
// the one that the policy defines, or a problem. HEAD requests get no body.
func (w *Writer) Deny(rw http.ResponseWriter, r *http.Request, d *mete.Decision, client ...string) {
	w.DenyAs(nil, Write, rw, r, d, client...)
}

// DenyAs is [Writer.Deny] for clients that expect another body than a problem, unless the policy defines one. standard is the
// body of denials by a limit, and may be nil. write sends the other ones.
func (w *Writer) DenyAs(standard *denialbody.Answer, write WriteFunc, rw http.ResponseWriter, r *http.Request, d *mete.Decision, client ...string) {
	retry := w.wait(d, client)
	w.header(rw.Header(), d, retry)
	w.writeDenial(rw, r, d, standard, write, retry)
}

// Unavailable responds to a request that could not be decided.
func (w *Writer) Unavailable(rw http.ResponseWriter, r *http.Request, client ...string) {
	w.Deny(rw, r, &mete.Decision{Degraded: true, Reason: mete.ReasonStoreError}, client...)
}

func (w *Writer) header(h http.Header, d *mete.Decision, retry int64) {
	s := newFieldBuilder()
	defer s.release()
	if len(d.Limits()) > 0 {
		first := d.Decider()
		w.writeDraft(s, d, first, retry)
		w.writeTrios(s, d, first, retry)
		w.writeTokens(s, d)
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
		s.textField(cacheControl, "no-store") // RFC 6585, section 4
	}
	s.set(h)
}

// never means that a denial has no Retry-After, because no wait helps.
const never = -1

// undecidedWait is the wait after a request that could not be decided, because the time of recovery is unknown.
const undecidedWait = time.Second

// ExactWait returns the wait of a denial without jitter, or [bucket.Never].
func ExactWait(d *mete.Decision) time.Duration {
	if d.Reason == mete.ReasonStoreError {
		return undecidedWait
	}
	return d.RetryAfter
}

// wait returns the value of Retry-After in seconds, [never], or 0 for an allowed request. All fields of the
// response and the text of its problem body use this value.
func (w *Writer) wait(d *mete.Decision, client []string) int64 {
	exact := ExactWait(d)
	switch {
	case d.Allowed:
		return 0
	case exact == bucket.Never:
		return never
	case d.Reason == mete.ReasonBlocked:
		return wholeSeconds(exact) // no jitter: this concerns one client until its block expires
	case d.Reason == mete.ReasonStoreError:
		return w.jitter.add(wholeSeconds(exact), w.percent, client)
	}
	return w.jitter.add(wholeSeconds(exact), w.jitterOf(d.Decider()), client)
}

func (w *Writer) jitterOf(decider *mete.Status) int {
	if decider != nil && decider.Rule != nil && !w.ignoreRules && !w.exact {
		if percent, ok := decider.Rule.Jitter.Percent(); ok {
			return percent
		}
	}
	return w.percent
}

func (w *Writer) shows(s *mete.Status, dialect dialect.Set) bool {
	if s.Rule != nil && s.Rule.Headers != 0 && !w.ignoreRules {
		return s.Rule.Headers.Has(dialect)
	}
	return w.dialects.Has(dialect)
}

// decider returns the deciding limit in a dialect's fields, or nil. first is the deciding limit of d.
func (w *Writer) decider(d *mete.Decision, first *mete.Status, dialect dialect.Set) *mete.Status {
	if first == nil || w.shows(first, dialect) {
		return first
	}
	limits := d.Limits()
	shown := make([]bool, 0, 16)
	for i := range limits {
		shown = append(shown, w.shows(&limits[i], dialect))
	}
	return d.DeciderAmong(shown)
}

// wholeSeconds returns d in whole seconds, rounded up and at least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(int64((d-1)/time.Second)+1, 1)
}

// unix returns t as Unix time in whole seconds, rounded up.
func unix(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}
