// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

const (
	bucketPath   = "/v1/bucket"
	activityPath = "/v1/activity"

	// maxReasonBytes bounds the reason for a change.
	maxReasonBytes = 256
)

func (a *API) serveBucket(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parseQuery(r, "key")
	if p != nil {
		return p
	}
	asked := query.Get("key")
	key, p := a.resolveKey(r.Context(), asked)
	if p != nil {
		return p
	}
	b, err := a.lim.Bucket(r.Context(), key)
	if err != nil {
		return bucketProblem(err, "the store is unavailable; try again later")
	}
	x := bucketOf(&b)
	if a.roleOf(r) < RoleOperate {
		a.maskBucket(&x, asked != key)
	}
	return serveJSON(w, x)
}

func (a *API) resetBucket(w http.ResponseWriter, r *http.Request, action *audit.Action) *api.Problem {
	q, p := a.bucketRequest(w, r, action, "key", "reason")
	switch {
	case p != nil:
		return p
	case q.reason == "":
		return memberProblem("/reason", "the reason is missing; give one in \"reason\" for the audit log")
	}
	before, err := a.lim.ResetBucket(r.Context(), q.key)
	if err != nil {
		return bucketProblem(err, "the store did not respond, and the bucket may or may not be full; resetting it again is safe")
	}
	if a.live.AI != nil {
		a.live.AI.Forget(q.key)
	}
	action.RecordChange(overrides.EntryReset, before.Missing())
	return serveJSON(w, api.BucketReset{
		Given: api.Amount(before.Missing()), Before: bucketOf(&before), After: api.Level{Remaining: api.Amount(maxTokens(&before.Status))},
		Missing: missingAfter(before.Snapshot),
	})
}

func (a *API) takeBucket(w http.ResponseWriter, r *http.Request, action *audit.Action) *api.Problem {
	q, p := a.bucketRequest(w, r, action, "key", "tokens", "reason")
	switch {
	case p != nil:
		return p
	case q.tokens == 0:
		return memberProblem("/tokens", "the amount is missing; set \"tokens\" to a number above 0")
	}
	after, taken, err := a.lim.TakeBucket(r.Context(), q.key, mete.TokensOf(q.tokens))
	if err != nil {
		return bucketProblem(err, "the store did not respond, and tokens may or may not have been taken; check the bucket before you retry")
	}
	action.RecordChange(overrides.EntryTaken, taken)
	return serveJSON(w, api.BucketTake{Taken: api.Amount(taken), After: bucketOf(&after)})
}

type bucketRequest struct {
	key, reason string
	tokens      bucket.Tokens
}

// bucketRequest reads a request with the given members and records its bucket in the audit log.
func (a *API) bucketRequest(w http.ResponseWriter, r *http.Request, action *audit.Action, members ...string) (q bucketRequest, p *api.Problem) {
	if p := a.checkSender(w, r); p != nil {
		return q, p
	}
	if _, p := parseQuery(r); p != nil {
		return q, p
	}
	buf := buffers.Get().(*buffer)
	defer buf.release()
	if p := buf.readBody(w, r); p != nil {
		return q, p
	}
	d := &buf.decoder
	if p := d.open(buf.in); p != nil {
		return q, p
	}
	for name := range d.members(members) {
		switch name {
		case "key":
			q.key = d.wantString("the key is not a string; use the form that an explanation shows")
		case "reason":
			q.reason = d.reason()
		case "tokens":
			q.tokens = d.amount("tokens", "", "tokens is 0; write a number above 0 with at most 3 decimals, such as 1 or 0.25")
		}
	}
	if p := d.close(); p != nil {
		return q, p
	}
	if q.key, p = a.resolveKey(r.Context(), q.key); p == nil {
		action.SetBucket(q.key, string(policy.Key(q.key).Mask(a.top.MaskKey)), q.reason)
	}
	return q, p
}

// bucketOf converts b for callers that may see its key.
func bucketOf(b *mete.BucketState) api.Bucket {
	key := policy.Key(b.Key)
	l := b.Snapshot.Limit
	rate := l.Rate()
	x := api.Bucket{
		At: b.At.Time(), Rule: b.Rule.Name, Limit: toValidUTF8(key.Limit()), Key: b.Key, Parts: topParts(key, b.Rule), Mode: b.Rule.Mode.String(), Shadow: b.Shadow,
		Algorithm: prose.Algorithm(b.Limit), Words: l.String(),
		Capacity: api.Amount(maxTokens(&b.Status)), Remaining: api.Amount(b.Room()), Owed: api.Amount(b.Debt()),
		Rate: api.Rate{Tokens: api.Amount(rate.Tokens), Per: api.Seconds(rate.Per)}, Refill: prose.Refill(l), Anchor: prose.Anchor(b.Limit.Bucket), Start: api.Seconds(b.Limit.Bucket.Start()),
		MaxReserved: api.Amount(l.MaxReserved()), Shards: b.Limit.Shards, Leased: b.Limit.Leased,
		Cost: api.Amount(b.Cost), RetryAfter: api.Seconds(b.RetryAfter), FullAfter: api.Seconds(b.FullAfter()), Penalty: api.PenaltyOf(b.Penalty()),
		Override: overrideOf(b.Limit.Override), BlockedBy: overrideOf(b.Block), AllowedBy: overrideOf(b.Allow),
	}
	for _, s := range b.Slots {
		x.Slots = append(x.Slots, api.Slot{ID: s.ID.String(), Left: api.Seconds(time.Duration(s.End-b.SlotsAt) * time.Microsecond)})
	}
	if l.Queued() {
		x.Queue, x.MaxReserved = x.MaxReserved, x.Queue
	}
	return x
}

// bucketProblem converts an error about a bucket. Its detail is unsure if the bucket may have changed.
func bucketProblem(err error, unsure string) *api.Problem {
	if unknown, ok := errors.AsType[*policy.KeyError](err); ok {
		text := "no bucket has this key: " + unknown.Reason
		if unknown.Hint != "" {
			text += "; " + unknown.Hint
		}
		return api.NewProblem(http.StatusNotFound, text)
	}
	if p := errorProblem(err); p.Status != http.StatusServiceUnavailable || mete.Spent(err) == mete.NotSpent {
		return p
	}
	return api.NewProblem(http.StatusServiceUnavailable, unsure)
}

func memberProblem(pointer, detail string) *api.Problem {
	p := api.NewProblem(http.StatusBadRequest, detail)
	p.Pointer = pointer
	return p
}

func (d *decoder) reason() string {
	text := d.wantString("the reason is not a string; give it in a few words")
	if d.problem == nil && len(text) > maxReasonBytes {
		d.fail(fmt.Sprintf("the reason is longer than %d bytes; shorten it", maxReasonBytes))
	}
	return text
}

func (a *API) serveActivity(w http.ResponseWriter, r *http.Request) *api.Problem {
	query, p := parseQuery(r, "key")
	if p != nil {
		return p
	}
	target, p := a.target(r.Context(), r, query.Get("key"))
	if p != nil {
		return p
	}
	answer := api.Activities{Masked: a.roleOf(r) < RoleOperate, Activity: []api.Activity{}}
	for _, x := range a.audit.List() {
		if target != nil && (x.Key == "" || !target.hasKey(x.Key)) {
			continue
		}
		if answer.Masked && x.Key != "" {
			x.Key = string(policy.Key(x.Key).Mask(a.top.MaskKey))
		}
		x.At = x.At.UTC().Truncate(time.Microsecond)
		answer.Activity = append(answer.Activity, x)
	}
	return serveJSON(w, answer)
}
