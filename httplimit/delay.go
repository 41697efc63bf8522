// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/policy"
)

// A queueing remembers whether a policy has limits with a queue.
type queueing struct {
	policy *policy.Matcher
	queues bool
}

// queues reports whether a decision may ask to wait.
func (m *Middleware) queues() bool {
	for _, r := range m.routes {
		if r.charge.Limit.Queued() {
			return true
		}
	}
	p := m.limiter.Policy()
	if p == nil {
		return false
	}
	known := m.known.Load()
	if known == nil || known.policy != p {
		known = &queueing{p, hasQueue(p)}
		m.known.Store(known)
	}
	return known.queues
}

func hasQueue(p *policy.Matcher) bool {
	for _, rule := range p.Rules() {
		for i := range rule.Limits {
			if rule.Limits[i].Bucket.Queued() {
				return true
			}
		}
	}
	return false
}

// take decides, and waits as long as the decision says. If that cannot be, what
// was spent is given back.
func (m *Middleware) take(ctx context.Context, req mete.Request) (mete.Decision, error) {
	if !m.queues() {
		return m.limiter.Take(ctx, req)
	}
	r, err := m.limiter.Reserve(ctx, req)
	if err != nil {
		return mete.Decision{}, err
	}
	if !r.Allowed || r.Wait == 0 {
		return r.Decision, nil
	}
	if r.Wait > m.maxDelay {
		_ = r.Cancel(context.WithoutCancel(ctx)) // if the store fails, they are spent
		return tooLong(r.Decision, m.maxDelay), nil
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return r.Decision, nil
	case <-ctx.Done():
		err := r.Cancel(context.WithoutCancel(ctx))
		return mete.Decision{}, errors.Join(context.Cause(ctx), err)
	}
}

// tooLong is the denial of a request that would have had to wait longer than
// most.
func tooLong(d mete.Decision, most time.Duration) mete.Decision {
	d.Allowed, d.RetryAfter, d.Wait = false, d.Wait-most, 0
	for i := range d.Limits {
		s := &d.Limits[i]
		if wait := s.Wait(); wait > most {
			s.Allowed, s.RetryAfter = false, wait-most
			if s.RetryAfter == d.RetryAfter {
				d.Rule, d.Reason = s.Rule.Name, s.Limit.Reason
			}
		}
	}
	return d
}
