// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// Reasons of denials that do not come from a limit's algorithm. [store.ReasonFull] is another.
const (
	ReasonBlocked          = "blocked"           // an override with action block
	ReasonMissingAttribute = "missing_attribute" // a rule with on_missing: deny
	ReasonStoreError       = "store_error"       // a rule with on_store_error: closed
)

// A Decision is the answer to a [Request]. It is a value. The caller must not change its slices.
type Decision struct {
	// Allowed reports whether the request may go ahead.
	Allowed bool

	// Rule is the name of the deciding rule. If the request is denied, it is the rule with the longest wait.
	// Otherwise it is the rule with the fewest tokens left. It is empty if no rule applied.
	Rule string

	// Reason tells why the request was denied, such as "token_bucket_exceeded", "missing_attribute", "blocked"
	// or "store_error". It is empty if the request is allowed.
	Reason string

	// RetryAfter is the wait of a denied request: the longest wait of any denying limit. It is 0 if the request
	// is allowed, and [bucket.Never] if waiting does not help. With [ReasonStoreError] and [store.ReasonFull] it is
	// one second, an estimate.
	RetryAfter time.Duration

	// Wait is how long an admitted request must wait before its work starts. The wait comes from a reservation, or
	// from a stage that delays requests when few tokens are left. [Request.MaxWait] does not bound a stage's delay.
	Wait time.Duration

	// Taken is the amount that the request got: the largest amount of any limit, before [Config.Scale]. It is 0 if
	// the request is denied. Only TakeUpTo can take less than the full cost.
	Taken bucket.Tokens

	// Degraded reports that the store failed and the rules' on_store_error decided. Failure classifies the store's
	// error, and Err is the full error.
	//
	// With on_store_error: local, buckets in this process decide, and Limits shows them. With closed, Reason is
	// [ReasonStoreError], and no limit is the cause.
	Degraded bool
	Failure  store.Failure
	Err      error

	// Skipped lists the rules that did not apply because the request lacks an attribute of their key
	// (on_missing: skip). It is set only for [Config.OnDecision].
	Skipped []*policy.Rule

	// Override is the override that blocked or allowed the request, or nil. An override that replaced a rule's
	// limit is in the [policy.Limit] of its Status instead.
	Override *policy.Override

	// Slots are the slots that the request holds under concurrency limits, or nil. Release them when the request ends.
	Slots *Slots

	// Shadow holds the limits of shadow rules, in the same form as Limits. They do not affect the decision.
	Shadow []Status

	// The limits are in one if single is set, and in several otherwise. The common case of one limit needs no
	// allocation.
	several []Status
	one     [1]Status
	single  bool
	denied  partNumber // the part that was denied without limits

	refusing *policy.Rule // see RefusingRule
}

// RefusingRule returns the rule that denied the request regardless of its limits, or nil. The request lacks an attribute, or
// has more tokens of a language model than the rule admits. Such a decision has no Limits.
func (d *Decision) RefusingRule() *policy.Rule { return d.refusing }

// Limits returns the enforced limits of the request in the order of the policy, followed by the request's own
// limits in the request's order. Limits with the same key share one status. The caller must not change the
// slice, which may point into d.
func (d *Decision) Limits() []Status {
	if d.single {
		return d.one[:]
	}
	return d.several
}

// WithLimits returns d with a copy of limits. Use it to test hooks and to build decisions.
func (d Decision) WithLimits(limits ...Status) Decision {
	d.setLimits(limits)
	return d
}

func (d *Decision) setLimits(limits []Status) {
	if d.single = len(limits) == 1; d.single {
		d.one[0], d.several = limits[0], nil
		return
	}
	d.several = slices.Clone(limits)
}

// A Status is the part of one limit in a decision. Rule and Limit are the policy's. For a limit of the request
// they have no name, and Snapshot.Limit holds the limit. The snapshot's Cost is the cost under this limit.
type Status struct {
	Rule  *policy.Rule
	Limit *policy.Limit
	Key   string // of the bucket. It may identify a client: keep it out of logs.
	bucket.Snapshot

	parts uint64 // the parts of the request that the limit applies to, one bit each
}

const nearPart = 5

// Near reports whether the limit admitted the request and at most a fifth of its capacity is left. Envoy's rate
// limit service uses the same threshold for its near-limit counter.
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

func (d *Decision) isNear() bool {
	limits := d.Limits()
	for i := range limits {
		if limits[i].Near() {
			return true
		}
	}
	return false
}

// Decider returns the deciding status: the denying status with the longest wait, or, for an allowed request,
// the status with the fewest tokens left. The first of several equal ones decides. The result is nil if no limit applied.
func (d *Decision) Decider() *Status {
	limits := d.Limits()
	if len(limits) == 1 && d.Allowed == limits[0].Allowed {
		return &limits[0]
	}
	return d.DeciderAmong(nil)
}

// DeciderAmong is [Decision.Decider] among some of the limits: among has an element for each of them. Nil means all.
func (d *Decision) DeciderAmong(among []bool) (decider *Status) {
	limits, least := d.Limits(), bucket.Tokens(0)
	for i := range limits {
		s := &limits[i]
		switch {
		case among != nil && !among[i]:
		case !d.Allowed:
			if !s.Allowed && (decider == nil || s.RetryAfter > decider.RetryAfter) {
				decider = s
			}
		default:
			if room := s.Room(); decider == nil || room < least {
				decider, least = s, room
			}
		}
	}
	return decider
}

func (d *Decision) conclude(mode Mode) {
	decider := d.Decider()
	d.Rule, d.RetryAfter = decider.Rule.Name, decider.RetryAfter
	if !d.Allowed {
		d.Reason = decider.Reason()
		return
	}
	limits := d.Limits()
	for i := range limits {
		s := &limits[i]
		if mode.MaxWait != 0 || s.Snapshot.Limit.Queued() { // other limits admit only without a wait
			d.Wait = max(d.Wait, s.wait(mode.DryRun))
		}
		if mode.MaxWait != bucket.Forced { // a forced charge is for finished work
			d.Wait = max(d.Wait, s.delay(mode.DryRun))
		}
	}
}

// Reason returns the reason of a denial by s: [store.ReasonFull], or the limit's own.
func (s *Status) Reason() string {
	if s.Spill == bucket.SpillClosed && s.RetryAfter != bucket.Never {
		return store.ReasonFull
	}
	return s.Limit.Reason
}

// wait returns how long the request waits for tokens under s. For a dry run it is the wait that a take would cause.
func (s *Status) wait(dryRun bool) time.Duration {
	if dryRun { // the snapshot excludes the cost
		return s.RefillAfter(s.Cost)
	}
	return s.Wait()
}

// Stage returns the stage of the limit that an admitted request has reached, or nil. [Decision.Wait] already
// includes its Delay.
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

// UndelayedAfter returns the time until no stage would delay this request by more than longest. It assumes that the
// request is refunded and no other request takes tokens. It is 0 if that is already true, and [bucket.Never] if it
// can never be true.
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

// delay returns how long the limit's stages delay a request that s admits, also in a dry run.
func (s *Status) delay(dryRun bool) time.Duration {
	if len(s.Limit.Stages) == 0 {
		return 0
	}
	after := *s
	if dryRun {
		after.Snapshot = s.WithCost()
	}
	if stage := after.Stage(); stage != nil {
		return stage.Delay
	}
	return 0
}

// A Denial is a decision together with the request's attributes, for [Config.OnDenial] and
// [Config.OnNearLimit]. Its log value (as a [slog.LogValuer]) omits the attributes.
type Denial struct {
	Decision

	// Attributes are the request's attributes. They are never nil. For a request with parts, they are the attributes
	// of the part that was denied or is near its limit, the first of several.
	Attributes policy.Attributes
}
