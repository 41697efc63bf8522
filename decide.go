// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Reasons for a denial that do not come from a limit's algorithm.
const (
	ReasonBlocked          = "blocked"           // an override says block
	ReasonMissingAttribute = "missing_attribute" // a rule says on_missing: deny
	ReasonStoreError       = "store_error"       // a rule says on_store_error: closed
)

// scratch is what one decision needs besides its answer.
type scratch struct {
	matches  []policy.Match // those of shadow rules behind the others
	enforced int            // how many others there are
	skipped  []*policy.Rule // for lack of their key
	verdict  policy.Verdict
	policy   *policy.Matcher
	now      bucket.Instant // where the policy depends on it
	own      []Charge       // that the request brings, with distinct keys

	charges []Charge // what the store is asked, and what it answers
	snaps   []bucket.Snapshot
	order   []int // charges[i] was made of the order[i]'th of the matches and own

	trip     trip       // of the charges, while they are decided
	accounts []*account // of the charges, where they were decided locally; else empty

	seen   Decision // while a hook has it
	denial Denial
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) release() {
	clear(s.matches) // they point to keys and policies
	clear(s.skipped)
	clear(s.own)
	clear(s.charges[:cap(s.charges)])
	s.forget()
	s.own, s.verdict, s.policy = s.own[:0], policy.Verdict{}, nil
	scratches.Put(s)
}

// forget forgets that anything was decided locally.
func (s *scratch) forget() {
	clear(s.accounts)
	s.accounts = s.accounts[:0]
}

// policyTold are attributes that are told which policy decides by them, and at what time.
type policyTold interface {
	Under(m *policy.Matcher, now bucket.Instant)
}

// match finds the limits the request falls under.
func (l *Limiter) match(req *Request) (*scratch, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	s := scratches.Get().(*scratch)
	s.matches, s.skipped, s.enforced = s.matches[:0], s.skipped[:0], 0
	if m := l.policy.Load(); m != nil {
		attrs := req.Attributes
		if attrs == nil {
			attrs = Attrs(nil)
		}
		s.policy, s.now = m, 0
		if m.Timed() {
			s.now = l.now()
		}
		if told, ok := attrs.(policyTold); ok {
			told.Under(m, s.now)
		}
		s.matches, s.skipped, s.verdict = m.MatchSkipped(s.matches, s.skipped, attrs, req.Cost, s.now)
		s.partition()
	} else if req.Cost > 0 && len(req.Charges) > 0 {
		s.release()
		return nil, fmt.Errorf("%w: a cost of %v, and no policy whose rules it could be for: charges have costs of their own", ErrRequest, req.Cost)
	}
	if len(req.Charges) > 0 {
		if err := s.bring(req); err != nil {
			s.release()
			return nil, err
		}
		if o := s.verdict.Allow; o != nil && o.Action == policy.BreakGlass {
			s.own = s.own[:0]
		}
	}
	return s, nil
}

// partition moves the matches of shadow rules behind the others, each in the
// policy's order.
func (s *scratch) partition() {
	s.enforced = len(s.matches)
	if !slices.ContainsFunc(s.matches, func(m policy.Match) bool { return m.Shadow }) {
		return
	}
	slices.SortStableFunc(s.matches, func(a, b policy.Match) int {
		switch {
		case a.Shadow == b.Shadow:
			return 0
		case b.Shadow:
			return -1
		}
		return 1
	})
	s.enforced = slices.IndexFunc(s.matches, func(m policy.Match) bool { return m.Shadow })
}

// decide answers one request and, unless nothing was to be spent, tells the hooks.
func (l *Limiter) decide(ctx context.Context, req *Request, mode Mode, r *receipt) (Decision, error) {
	if ctx.Err() != nil {
		return Decision{}, ended(ctx)
	}
	s, err := l.match(req)
	if err != nil {
		return Decision{}, err
	}
	defer s.release()
	d, err := l.ask(ctx, s, req, mode, r)
	if err == nil && !mode.DryRun {
		l.report(ctx, s, req, &d)
	}
	return d, err
}

// ask answers a request that has been matched. What an allowed one spends goes
// into r, if that is not nil.
func (l *Limiter) ask(ctx context.Context, s *scratch, req *Request, mode Mode, r *receipt) (Decision, error) {
	if s.verdict.Denies() {
		return s.refusal(), nil
	}
	d := Decision{Allowed: true, Taken: req.Cost, Override: s.verdict.Allow}
	if req.ID != "" {
		mode.ID = s.storeID(req.ID, mode)
	}
	if s.enforced+len(s.own) > 0 {
		var err error
		mode.Within = l.within(s)
		defer s.trip.land()
		d.Limits, d.Allowed, err = l.take(ctx, s, s.matches[:s.enforced], s.own, mode)
		if err != nil {
			if ctx.Err() != nil {
				return Decision{}, err
			}
			return l.degraded(ctx, s, req, mode, r, err), nil
		}
		r = s.conclude(&d, req, mode, r)
	}
	if d.Allowed && s.enforced < len(s.matches) {
		l.shadow(ctx, s, req, &d, mode, r)
	}
	return d, nil
}

// refusal is the decision where the policy denies the request, whatever is in the
// buckets.
func (s *scratch) refusal() Decision {
	if o := s.verdict.Block; o != nil {
		return Decision{Override: o, Reason: ReasonBlocked, RetryAfter: until(bucket.At(o.ExpiresAt), s.now)}
	}
	return Decision{Rule: s.verdict.Missing.Name, Reason: ReasonMissingAttribute, RetryAfter: bucket.Never}
}

// until is how long it is from now to end, [bucket.Never] if that is beyond what a
// duration can say.
func until(end, now bucket.Instant) time.Duration {
	left := int64(end - now)
	if left > int64(bucket.Never)/int64(time.Microsecond) {
		return bucket.Never
	}
	return time.Duration(left) * time.Microsecond
}

// conclude fills in what follows from what the charges' buckets said, and notes
// what was spent. It returns the receipt, if it still is of interest.
func (s *scratch) conclude(d *Decision, req *Request, mode Mode, r *receipt) *receipt {
	d.conclude(mode)
	if d.Taken = 0; !d.Allowed {
		return r
	}
	d.Taken = s.taken()
	if r != nil {
		if r.within = mode.Within; r.waits && d.Wait == 0 {
			return nil
		}
	}
	r.note(s, req, false)
	return r
}

// storeID returns the ID that the store is given: the caller's, and a hash of the
// question. The question is the keys, each with its cost before scaling, in the order
// of the keys, and how the limiter takes. The order of rules and of [Request.Charges]
// makes no difference to it, and neither does the limit that a key has by now.
//
// A question with another key, another cost or another way to take gets no old answer.
// The length of MaxWait is no part of the question: a deadline that comes nearer makes
// it shorter with each retry.
func (s *scratch) storeID(id string, mode Mode) string {
	way := byte('n') // what is there now
	switch {
	case mode.UpTo:
		way = 'u'
	case mode.MaxWait == bucket.Forced:
		way = 'f'
	case mode.MaxWait > 0:
		way = 'r' // also what will be there
	}
	text := append(make([]byte, 0, 128), way)
	for _, at := range s.byKey() {
		key, cost := s.asked(at)
		text = strconv.AppendInt(append(strconv.AppendQuote(text, key), ' '), int64(cost), 10)
	}
	sum := sha256.Sum256(text)
	return id + " " + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// byKey returns the places of the enforced matches and own charges, in the order of
// their keys. It uses s.order, which [scratch.charge] fills anew.
func (s *scratch) byKey() []int {
	s.order = s.order[:0]
	for i := range s.enforced + len(s.own) {
		s.order = append(s.order, i)
	}
	slices.SortFunc(s.order, func(i, j int) int {
		a, _ := s.asked(i)
		b, _ := s.asked(j)
		return strings.Compare(a, b)
	})
	return s.order
}

// asked returns the key at a place of the enforced matches and own charges, and its
// cost before scaling.
func (s *scratch) asked(at int) (key string, cost bucket.Tokens) {
	if at >= s.enforced {
		c := &s.own[at-s.enforced]
		return c.Key, c.Cost
	}
	return s.matches[at].Key, s.matches[at].Cost
}

// taken is what the request got: the most of any limit, in the caller's tokens.
func (s *scratch) taken() (most bucket.Tokens) {
	for i := range s.snaps {
		got, asked := s.snaps[i].Cost, s.charges[i].Cost
		if cost := s.cost(i); cost != asked { // it was scaled
			got = proportion(cost, got, asked, false)
		}
		most = max(most, got)
	}
	return most
}

// cost is what the i'th charge cost before it was scaled.
func (s *scratch) cost(i int) bucket.Tokens {
	_, cost := s.asked(s.order[i])
	return cost
}

// names are those of the i'th charge: of its rule, and of the reason to deny it.
func (s *scratch) names(i int) (rule, reason string) {
	at := s.order[i]
	if at >= s.enforced {
		return "", noLimit(&s.charges[i].Limit).Reason
	}
	return s.matches[at].Rule.Name, s.matches[at].Limit.Reason
}

// shadow takes from each shadow rule by itself, so that none sees another, and
// only for requests that happen: that is what the rule would see if it were
// enforced. It changes nothing in the decision but its Shadow.
func (l *Limiter) shadow(ctx context.Context, s *scratch, req *Request, d *Decision, mode Mode, r *receipt) {
	t := scratches.Get().(*scratch)
	all := append(t.matches[:0], s.matches[s.enforced:]...)
	for rest := all; len(rest) > 0; rest = rest[t.enforced:] {
		t.enforced = 1
		for t.enforced < len(rest) && rest[t.enforced].Rule == rest[0].Rule {
			t.enforced++
		}
		t.matches = rest[:t.enforced]
		if mode.UpTo && len(d.Limits) > 0 {
			for i := range t.matches {
				t.matches[i].Cost = min(t.matches[i].Cost, d.Taken)
			}
		}
		mode.Within = t.matches[0].Rule.Deadline
		statuses, allowed, err := l.take(ctx, t, t.matches, nil, mode)
		if err != nil {
			break // it has no say, as the request is decided, and the next would wait as long
		}
		d.Shadow = append(d.Shadow, statuses...)
		if allowed {
			r.note(t, req, true)
		}
	}
	t.matches = all
	t.release()
}
