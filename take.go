// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// Reasons for a denial that do not come from a limit's algorithm.
const (
	ReasonMissingAttribute = "missing_attribute" // a rule says on_missing: deny
	ReasonStoreError       = "store_error"       // a rule says on_store_error: closed
)

// scratch is what one decision needs besides its answer.
type scratch struct {
	matches []policy.Match
	missing *policy.Rule
	charges []Charge
	order   []int // charges[i] belongs to the matches[order[i]] it was made of
	snaps   []bucket.Snapshot
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) release() {
	clear(s.matches) // they point to keys and policies
	clear(s.charges[:cap(s.charges)])
	s.missing = nil
	scratches.Put(s)
}

// match finds the limits the request falls under.
func (l *Limiter) match(req Request) (*scratch, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	if req.Attributes == nil {
		req.Attributes = Attrs(nil)
	}
	s := scratches.Get().(*scratch)
	s.matches, s.missing = l.policy.Load().Match(s.matches[:0], req.Attributes, req.Cost)
	return s, nil
}

// charge turns matches into charges as the [Store] wants them: in the order of
// their keys. Rules never share a key, so the keys are distinct.
func (s *scratch) charge(matches []policy.Match) []Charge {
	s.charges, s.order = s.charges[:0], s.order[:0]
	for i, m := range matches {
		// Insertion: there are rarely more than four.
		at := len(s.charges)
		for at > 0 && strings.Compare(m.Key, s.charges[at-1].Key) < 0 {
			at--
		}
		s.charges = slices.Insert(s.charges, at, Charge{Key: m.Key, Limit: m.Limit.Bucket, Cost: m.Cost})
		s.order = slices.Insert(s.order, at, i)
	}
	return s.charges
}

// take asks the store about matches and appends their statuses to dst, in the
// order of matches.
func (l *Limiter) take(ctx context.Context, s *scratch, matches []policy.Match, mode Mode) ([]Status, bool, error) {
	charges := s.charge(matches)
	snaps, allowed, err := l.store.Take(ctx, s.snaps[:0], charges, mode)
	if err != nil {
		return nil, false, err
	}
	s.snaps = snaps
	statuses := make([]Status, len(matches))
	for i, at := range s.order {
		m := &matches[at]
		statuses[at] = Status{Rule: m.Rule, Limit: m.Limit, Cost: m.Cost, Snapshot: snaps[i]}
	}
	return statuses, allowed, nil
}

// decide answers one request.
func (l *Limiter) decide(ctx context.Context, req Request, mode Mode) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	s, err := l.match(req)
	if err != nil {
		return Decision{}, err
	}
	defer s.release()
	if s.missing != nil {
		return Decision{Rule: s.missing.Name, Reason: ReasonMissingAttribute, RetryAfter: bucket.Never}, nil
	}

	enforced := s.partition()
	d := Decision{Allowed: true}
	if enforced > 0 {
		d.Limits, d.Allowed, err = l.take(ctx, s, s.matches[:enforced], mode)
		if err != nil {
			if ctx.Err() != nil {
				return Decision{}, err
			}
			return degraded(s.matches[:enforced], err), nil
		}
		d.conclude()
		if d.Wait > 0 && !mode.DryRun { // only a wait can be given up
			d.charges = slices.Clone(s.charges)
		}
	}
	if d.Allowed {
		l.shadow(ctx, s, s.matches[enforced:], &d, mode)
	}
	return d, nil
}

// partition moves the matches of shadow rules behind the others, each in the
// policy's order, and returns how many others there are.
func (s *scratch) partition() int {
	if !slices.ContainsFunc(s.matches, func(m policy.Match) bool { return m.Rule.Shadow }) {
		return len(s.matches)
	}
	slices.SortStableFunc(s.matches, func(a, b policy.Match) int {
		switch {
		case a.Rule.Shadow == b.Rule.Shadow:
			return 0
		case b.Rule.Shadow:
			return -1
		}
		return 1
	})
	return slices.IndexFunc(s.matches, func(m policy.Match) bool { return m.Rule.Shadow })
}

// shadow takes from each shadow rule by itself, so that none sees another, and
// only for requests that happen: that is what the rule would see if it were
// enforced. It changes nothing in the decision but its Shadow.
func (l *Limiter) shadow(ctx context.Context, s *scratch, matches []policy.Match, d *Decision, mode Mode) {
	for len(matches) > 0 {
		n := 1
		for n < len(matches) && matches[n].Rule == matches[0].Rule {
			n++
		}
		// A store that fails here has no say: the request is decided.
		statuses, allowed, err := l.take(ctx, s, matches[:n], mode)
		if err == nil {
			d.Shadow = append(d.Shadow, statuses...)
		}
		if allowed && d.charges != nil {
			d.charges = append(d.charges, s.charges...)
		}
		matches = matches[n:]
	}
}

// degraded is the decision where the store could not answer: the request passes
// unless one of its rules says closed.
func degraded(matches []policy.Match, err error) Decision {
	d := Decision{Allowed: true, Degraded: true, Err: err}
	for _, m := range matches {
		if m.Rule.OnStoreError == policy.Closed {
			d.Allowed, d.Rule, d.Reason = false, m.Rule.Name, ReasonStoreError
			break
		}
	}
	return d
}
