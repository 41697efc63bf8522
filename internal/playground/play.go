// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"container/heap"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// Play runs the traffic of in against each of its lanes. The error is [InputErrors] if in is invalid, or wraps the error
// of ctx.
func Play(ctx context.Context, in api.Play) (*api.PlayResult, error) {
	var ms InputErrors
	switch n := len(in.Lanes); {
	case n == 0:
		ms.add("/lanes", "add one", "the input has no limit")
	case n > MaxLanes:
		ms.add("/lanes", "remove some", "%d limits are more than %d", n, MaxLanes)
		return nil, ms
	}
	lanes := make([]*lane, len(in.Lanes))
	for i, l := range in.Lanes {
		lanes[i] = laneSpec(l).compile(fmt.Sprintf("/lanes/%d", i), &ms)
	}
	tl := newTimeline(&in.Traffic, &ms)
	if err := ms.err(); err != nil {
		return nil, err
	}
	r := &api.PlayResult{Seconds: secondsAt(tl.end), Requests: len(tl.arrivals)}
	for i, l := range lanes {
		p, err := newPlay(l, &tl, in.Traffic.Retry)
		if err != nil {
			return nil, err
		}
		if err := p.run(ctx, fmt.Sprintf("/lanes/%d", i)); err != nil {
			return nil, err
		}
		r.Lanes = append(r.Lanes, p.buildResult(in.Export))
	}
	return r, nil
}

// A play is the run of one lane. Its limiter and store read the virtual time from now.
type play struct {
	*lane
	now     bucket.Instant
	limiter *mete.Limiter
	request mete.Request
	end     bucket.Instant
	queue   queue // future requests

	writer *ratelimitfields.Writer // formats Retry-After; nil if denied clients do not retry

	running []running // requests that hold a slot, in the order of their ends
	steps   int       // ends that the chart shows

	decisions    []decision
	levels       []api.Point
	lateRetries  int            // denied requests that would retry after the end
	neverAllowed int            // denied requests that can never be allowed
	full         bucket.Instant // when the bucket is full again after the last request
}

// A running request holds slots until it ends. All requests of a lane last equally long.
type running struct {
	end   bucket.Instant
	slots *mete.Slots
}

type decision struct {
	api.PlayDecision
	requestCost bucket.Tokens // 0 if the request has no cost of its own
}

// jitterKey is fixed, so that jitter is the same in all plays.
const jitterKey = "playground"

func newPlay(l *lane, tl *timeline, retry bool) (*play, error) {
	p := &play{lane: l, end: tl.end, queue: make(queue, len(tl.arrivals)), request: mete.Request{Attributes: policy.Map{"ip:address": Client}}}
	for i, a := range tl.arrivals {
		p.queue[i] = attempt{arrival: a, order: i, client: i, try: 1}
	}
	clock := func() bucket.Instant { return p.now }
	store, err := memstore.New(memstore.Config{MaxKeys: 16, Now: clock})
	if err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	if p.limiter, err = mete.New(store, l.matcher, mete.Config{Now: clock}); err != nil {
		return nil, fmt.Errorf("playground: %w", err)
	}
	if retry {
		if p.writer, err = ratelimitfields.New(ratelimitfields.Config{JitterKey: []byte(jitterKey)}); err != nil {
			return nil, fmt.Errorf("playground: %w", err)
		}
	}
	return p, nil
}

// run decides all requests in the order of time and samples the level of the bucket.
func (p *play) run(ctx context.Context, field string) error {
	for point := range Levels {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("playground: %w", err)
		}
		at := p.end * bucket.Instant(point) / (Levels - 1)
		for len(p.queue) > 0 && p.queue[0].at < at {
			if err := p.takeNext(ctx, field); err != nil {
				return err
			}
		}
		if err := p.endUntil(ctx, at); err != nil {
			return err
		}
		next, err := p.sampleLevel(ctx, at)
		if err != nil {
			return err
		}
		if following := p.end * bucket.Instant(point+1) / (Levels - 1); next > at && next < following && (len(p.queue) == 0 || p.queue[0].at >= next) {
			if err := p.sampleStep(ctx, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// endUntil ends the requests that end until at. The chart shows the steps of the first ones.
func (p *play) endUntil(ctx context.Context, at bucket.Instant) error {
	for len(p.running) > 0 && p.running[0].end <= at {
		end := p.running[0].end
		shown := p.steps < Levels && end <= p.end
		if shown {
			p.steps++
			if _, err := p.sampleLevel(ctx, end-1); err != nil {
				return err
			}
		}
		for ; len(p.running) > 0 && p.running[0].end == end; p.running = p.running[1:] {
			p.now = end
			if err := p.running[0].slots.Release(ctx); err != nil {
				return fmt.Errorf("playground: %w", err)
			}
		}
		if shown {
			if _, err := p.sampleLevel(ctx, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// sampleLevel records the level at an instant. For a bucket that refills at intervals and is not full it returns the
// instant of the next refill, and otherwise 0.
func (p *play) sampleLevel(ctx context.Context, at bucket.Instant) (next bucket.Instant, err error) {
	p.now = at
	d, err := p.limiter.Peek(ctx, p.request)
	if err != nil {
		return 0, fmt.Errorf("playground: %w", err)
	}
	p.levels = append(p.levels, api.Point{After: time.Duration(at) * time.Microsecond, Level: api.Amount(levelOf(d.Limits()[0].Snapshot))})
	s := &d.Limits()[0]
	if s.Snapshot.Limit.Algorithm() != bucket.AlgorithmStepped || s.Missing() == 0 {
		return 0, nil
	}
	return at.Add(s.RefillAfter(s.Room() + 1)), nil
}

// sampleStep records the level just before and at a refill, so that the chart shows a step.
func (p *play) sampleStep(ctx context.Context, at bucket.Instant) error {
	for _, at := range []bucket.Instant{at - 1, at} {
		if _, err := p.sampleLevel(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) takeNext(ctx context.Context, field string) error {
	v := heap.Pop(&p.queue).(attempt)
	if err := p.endUntil(ctx, v.at); err != nil {
		return err
	}
	p.now = v.at
	req := p.request
	req.Cost = mete.TokensOf(v.cost)
	d, err := p.limiter.Take(ctx, req)
	if err != nil {
		return fmt.Errorf("playground: %w", err)
	}
	status := &d.Limits()[0]
	p.decisions = append(p.decisions, decision{api.PlayDecision{
		At: v.at, Allowed: d.Allowed, RetryAfter: d.RetryAfter, Remaining: status.Room().Whole(), Wait: d.Wait,
		Before: levelOf(status.WithoutCost()), Level: levelOf(status.Snapshot), Cost: status.Cost, Client: v.client, Try: v.try,
	}, v.cost})
	p.full = v.at.Add(status.FullAfter())
	if d.Slots != nil {
		p.running = append(p.running, running{v.at.Add(p.per), d.Slots})
	}
	switch {
	case d.Allowed:
		return nil
	case d.RetryAfter == bucket.Never:
		p.neverAllowed++
		return nil
	case p.writer == nil:
		return nil
	}
	return p.scheduleRetry(v, &d, field)
}

func (p *play) scheduleRetry(v attempt, d *mete.Decision, field string) error {
	header := http.Header{}
	p.writer.Header(header, d, strconv.Itoa(v.client))
	wait, err := strconv.ParseInt(header.Get("Retry-After"), 10, 64)
	if err != nil {
		return fmt.Errorf("playground: retry-after: %w", err)
	}
	if wait >= int64((p.end-v.at+second-1)/second) {
		p.lateRetries++
		return nil
	}
	if len(p.decisions)+len(p.queue) >= MaxRequests {
		return InputErrors{api.ErrorDetail{Pointer: field, Detail: fmt.Sprintf("more than %d requests, retries included", MaxRequests),
			Hint: "send fewer requests, raise the limit, or turn retries off"}}
	}
	v.at += bucket.Instant(wait) * second
	v.order, v.try = len(p.decisions)+MaxRequests, v.try+1
	heap.Push(&p.queue, v)
	return nil
}

// levelOf returns the level of a bucket, below 0 if tokens wait in its queue.
func levelOf(s bucket.Snapshot) bucket.Tokens { return s.Limit.Capacity() - s.Missing() }

// An attempt is a future request: a first one or a retry.
type attempt struct {
	arrival
	order  int // among requests of one instant
	client int
	try    int
}

type queue []attempt

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(v any)   { *q = append(*q, v.(attempt)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func secondsAt(at bucket.Instant) api.Seconds {
	return api.Seconds(time.Duration(at) * time.Microsecond)
}
