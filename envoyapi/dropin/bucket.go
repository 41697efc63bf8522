// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

var errTooMany = errors.New("too many token buckets")

// takeTokens takes the hits of a request from token buckets, from all or from none, and computes the status of each
// descriptor. Limits with shadow_mode follow one by one, and take nothing for a denied request.
func (c *call) takeTokens(ctx context.Context, s *Service) error {
	if c.choose(func(h *hit) bool { return h.negative }) > 0 {
		if err := c.returnTokens(ctx, s); err != nil {
			return err
		}
	}
	allowed, err := c.takeEnforced(ctx, s)
	if err != nil {
		return err
	}
	send := s.limiter.Take
	if !allowed {
		send = s.limiter.Peek
	}
	for i := range c.hits {
		if c.choose(func(h *hit) bool { return h == &c.hits[i] && !h.negative && h.rule.shadow }) == 0 {
			continue
		}
		if _, err := c.take(ctx, send); err != nil {
			return err
		}
	}
	return nil
}

// choose selects the hits with a limit for which f returns true, and returns their number.
func (c *call) choose(f func(*hit) bool) int {
	n := 0
	for i := range c.hits {
		h := &c.hits[i]
		if h.chosen = h.rule != nil && !h.rule.unlimited && f(h); h.chosen {
			h.charged = h.hits
			n++
		}
	}
	return n
}

// takeEnforced takes the hits of all limits without shadow_mode, and reports whether the request is allowed. A limit
// with quota_mode denies only together with every other such limit. Otherwise the request takes from the others.
func (c *call) takeEnforced(ctx context.Context, s *Service) (bool, error) {
	quotas := 0
	n := c.choose(func(h *hit) bool {
		enforced := !h.negative && !h.rule.shadow
		if enforced && (s.options.QuotaMode || h.rule.quota) {
			quotas++
		}
		return enforced
	})
	for n > 0 {
		allowed, err := c.take(ctx, s.limiter.Take)
		if err != nil || allowed {
			return allowed, err
		}
		denied := 0
		for i := range c.hits {
			h := &c.hits[i]
			if !h.chosen || !h.over {
				continue
			}
			if !s.options.QuotaMode && !h.rule.quota {
				return false, nil
			}
			h.chosen = false
			denied++
		}
		n -= denied
		if quotas -= denied; quotas == 0 || denied == 0 {
			return false, nil
		}
	}
	return true, nil
}

// take sends the chosen hits to the store in one step, and computes their statuses.
func (c *call) take(ctx context.Context, send func(context.Context, mete.Request) (mete.Decision, error)) (bool, error) {
	c.collect(c.hits)
	if len(c.charges) > store.MaxCharges {
		return false, fmt.Errorf("%w: %d: a request has at most %d, because it takes from all or none", errTooMany, len(c.charges), store.MaxCharges)
	}
	d, err := send(ctx, mete.Request{Charges: c.charges})
	if err != nil {
		return false, err
	}
	limits := d.Limits()
	if len(limits) != len(c.charges) {
		return false, outageError(&d)
	}
	for i := range c.hits {
		if h := &c.hits[i]; c.places[i] >= 0 {
			h.judgeBucket(&limits[c.places[i]].Snapshot, d.Allowed)
		}
	}
	return d.Allowed, nil
}

func (c *call) returnTokens(ctx context.Context, s *Service) error {
	c.collect(c.hits)
	for charges := c.charges; len(charges) > 0; {
		some := charges[:min(len(charges), store.MaxCharges)]
		charges = charges[len(some):]
		if err := s.limiter.Refund(ctx, mete.Request{Charges: some}); err != nil {
			return err
		}
	}
	for i := range c.hits {
		c.hits[i].charged = 0
	}
	_, err := c.take(ctx, s.limiter.Peek)
	for i := range c.hits {
		if h := &c.hits[i]; h.chosen {
			h.over = false
		}
	}
	return err
}

// judgeBucket computes the status of a hit from its bucket. Taken reports whether the request took its hits.
func (h *hit) judgeBucket(snap *bucket.Snapshot, taken bool) {
	h.limit, h.over = uint64(h.rule.limit.RequestsPerUnit), !snap.Allowed
	if h.over {
		h.before, h.after, h.remaining = h.limit, h.limit+h.hits, 0
		h.reset = wholeSeconds(snap.RetryAfter, h.rule.window.seconds)
		return
	}
	left := min(uint64(snap.Remaining().Whole()), h.limit, math.MaxUint32)
	h.remaining, h.after = uint32(left), h.limit-left
	if h.before = h.after; taken {
		h.before = h.after - min(h.after, h.hits)
	}
	h.reset = wholeSeconds(snap.FullAfter(), h.rule.window.seconds)
}

// wholeSeconds returns d in seconds, rounded up, or the length of the window if waiting does not help.
func wholeSeconds(d time.Duration, window int64) int64 {
	if d == bucket.Never {
		return window
	}
	return int64((d + time.Second - 1) / time.Second)
}
