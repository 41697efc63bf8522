// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Reasons for a denial that do not come from a limit's algorithm.
const (
	ReasonBlocked          = "blocked"           // an override says block
	ReasonMissingAttribute = "missing_attribute" // a rule says on_missing: deny
	ReasonStoreError       = "store_error"       // a rule says on_store_error: closed
)

// A Decision is the answer to a [Request]. It is a value; its slices must not be
// changed.
type Decision struct {
	// Allowed says whether the request may happen.
	Allowed bool

	// Rule is the name of the rule that decided: the one with the longest wait
	// where denied, the one with the fewest tokens left where allowed. It is
	// empty where no rule applied.
	Rule string

	// Reason says why a request was denied, such as "token_bucket_exceeded",
	// "missing_attribute", "blocked" or "store_error". It is empty where allowed.
	Reason string

	// RetryAfter is how long a denied caller must wait: the longest of the
	// denying limits. [bucket.Never] where no wait helps, 0 where allowed; a second,
	// for want of a better one, where the store did not answer ([ReasonStoreError]).
	RetryAfter time.Duration

	// Wait is how long an admitted request must wait before its work starts: a
	// reservation for its tokens, and any request where little is left under a limit
	// whose stages delay those. [Request.MaxWait] has no part in the latter.
	Wait time.Duration

	// Taken is how much of what was asked for the request got, under the limit
	// that costs it most; 0 where denied. It is all of it, but after TakeUpTo.
	Taken bucket.Tokens

	// Degraded marks a decision that the store had no part in: it could not
	// answer, and the rules said what to do then. Failure says in a word why it
	// could not, and Err in full.
	//
	// Where a rule says local, the decision is one like any other, of buckets in
	// this process: Limits shows those. Where one says closed, Reason is
	// [ReasonStoreError], and a limit has nothing to do with it.
	Degraded bool
	Failure  store.Failure
	Err      error

	// Skipped are the rules that did not apply because the request lacks an attribute of
	// their key (on_missing: skip). Only [Config.OnDecision] gets them.
	Skipped []*policy.Rule

	// Override is what blocked the request, or let it through whatever the rules say;
	// nil for neither. One that put another limit in the place of a rule's is in the
	// [policy.Limit] of its Status.
	Override *policy.Override

	// Shadow shows the limits of shadow rules, which decide nothing, as Limits shows those
	// that are enforced.
	Shadow []Status

	// What Limits returns: one, if single is set, and else several. One limit is the common
	// case, and needs no memory of its own.
	several []Status
	one     [1]Status
	single  bool
}

// Limits returns every enforced limit the request fell under, in the order of
// the policy. Limits that the request brought stand behind those of the policy, in its
// order; one that shares a key with another is shown with that. The caller must not
// change them. The slice may point into d.
func (d *Decision) Limits() []Status {
	if d.single {
		return d.one[:]
	}
	return d.several
}

// WithLimits returns d with other Limits, of which it keeps a copy: for tests of hooks, and
// for decisions that a program makes by itself.
func (d Decision) WithLimits(limits ...Status) Decision {
	d.setLimits(limits)
	return d
}

// setLimits makes Limits return a copy of limits.
func (d *Decision) setLimits(limits []Status) {
	if d.single = len(limits) == 1; d.single {
		d.one[0], d.several = limits[0], nil
		return
	}
	d.several = slices.Clone(limits)
}

// A Status is one limit's part in a decision. Rule and Limit are those of the
// policy; where the request brought the limit they have no name, and only
// Snapshot.Limit says what it is. The snapshot's Cost is what the request cost
// under this limit.
type Status struct {
	Rule  *policy.Rule
	Limit *policy.Limit
	Key   string // of the bucket. It may say who the client is: keep it out of logs.
	bucket.Snapshot
}

// nearPart is the part of a limit of which, once no more is left, it is near.
const nearPart = 5

// Near reports whether the limit admitted the request and is nearly reached: at
// most a fifth of what it can admit at once is left. (Envoy's rate limit service
// counts a request as near its limit at the same four fifths.)
func (s *Status) Near() bool {
	if !s.Allowed {
		return false
	}
	all := s.Snapshot.Limit.Capacity()
	if s.Snapshot.Limit.Queued() {
		all += s.Snapshot.Limit.MaxReserved()
	}
	return s.Room() <= all/nearPart
}

// near reports whether a limit is.
func (d *Decision) near() bool {
	limits := d.Limits()
	for i := range limits {
		if limits[i].Near() {
			return true
		}
	}
	return false
}

// Decider returns the status that decided: the denying one with the longest
// wait or, of an allowed request, the one with the fewest tokens remaining. The
// first of equals wins. It is nil where no limit applied.
func (d *Decision) Decider() *Status {
	limits := d.Limits()
	if len(limits) == 1 && d.Allowed == limits[0].Allowed {
		return &limits[0]
	}
	var decider *Status
	if !d.Allowed {
		for i := range limits {
			if s := &limits[i]; !s.Allowed && (decider == nil || s.RetryAfter > decider.RetryAfter) {
				decider = s
			}
		}
		return decider
	}
	least := bucket.Tokens(0)
	for i := range limits {
		if room := limits[i].Room(); decider == nil || room < least {
			decider, least = &limits[i], room
		}
	}
	return decider
}

// conclude fills in what follows from the limits.
func (d *Decision) conclude(mode Mode) {
	decider := d.Decider()
	d.Rule, d.RetryAfter = decider.Rule.Name, decider.RetryAfter
	if !d.Allowed {
		d.Reason = decider.Limit.Reason
		return
	}
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		if mode.MaxWait != 0 || s.Snapshot.Limit.Queued() { // others admit what need not wait
			d.Wait = max(d.Wait, s.wait(mode.DryRun))
		}
		if mode.MaxWait != bucket.Forced { // else what is charged for has happened
			d.Wait = max(d.Wait, s.delay(mode.DryRun))
		}
	}
}

// wait is how long an admitted request has to wait for tokens under s, or would
// have to.
func (s *Status) wait(dryRun bool) time.Duration {
	if dryRun { // the snapshot is without the cost
		return s.Earliest(s.Cost)
	}
	return s.Wait()
}

// Stage returns what becomes of an admitted request because so little is left
// under the limit: nil for nothing. Its Delay is in [Decision.Wait] already.
func (s *Status) Stage() *policy.Stage {
	if !s.Allowed || len(s.Limit.Stages) == 0 {
		return nil
	}
	used, capacity := s.Snapshot.Limit.Capacity()-s.Room(), s.Snapshot.Limit.Capacity()
	if whole := s.Limit.Bucket.Capacity(); whole != capacity { // the bucket has a share of the limit
		used = proportion(used, whole, capacity, false)
	}
	return s.Limit.Stage(used)
}

// UndelayedAfter is how long it takes, if the request gives back what it took and
// nobody else takes, until the same request is delayed by no stage for longer than
// longest. It is 0 where it is not now, and [bucket.Never] where it always is.
func (s *Status) UndelayedAfter(longest time.Duration) time.Duration {
	stage := s.Stage()
	if stage == nil || stage.Delay <= longest {
		return 0
	}
	at := stage.At
	for i := range s.Limit.Stages {
		if earlier := &s.Limit.Stages[i]; earlier.Delay > longest {
			at = earlier.At
			break
		}
	}
	capacity := s.Snapshot.Limit.Capacity()
	if whole := s.Limit.Bucket.Capacity(); whole != capacity {
		at = proportion(at, capacity, whole, false)
	}
	if s.Cost >= at {
		return bucket.Never
	}
	return s.RoomAfter(capacity - at + 1)
}

// delay is how long the stages of the limit hold the request that s admits, or would
// hold it.
func (s *Status) delay(dryRun bool) time.Duration {
	if len(s.Limit.Stages) == 0 {
		return 0
	}
	after := *s
	if dryRun {
		after.Snapshot = s.With()
	}
	if stage := after.Stage(); stage != nil {
		return stage.Delay
	}
	return 0
}

// A Denial is a decision that denies a request, or would if shadow rules were
// enforced, or soon will, with the attributes of the request: see [Config.OnDenial] and
// [Config.OnNearLimit]. As a [slog.LogValuer] it is its decision, without attributes.
type Denial struct {
	Decision

	// Attributes are the request's, and never nil.
	Attributes policy.Attributes
}
