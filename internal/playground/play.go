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

// Play plays in. The error is [Mistakes] if in cannot be played, or the error of ctx,
// which it checks often.
func Play(ctx context.Context, in api.Play) (*api.PlayResult, error) {
	var ms Mistakes
	switch n := len(in.Lanes); {
	case n == 0:
		ms.add("/lanes", "add one", "there is no limit to play")
	case n > MaxLanes:
		ms.add("/lanes", "remove some", "%d limits are more than %d", n, MaxLanes)
		return nil, ms
	}
	lanes := make([]*lane, len(in.Lanes))
	for i, l := range in.Lanes {
		lanes[i] = wanted(l).compile(fmt.Sprintf("/lanes/%d", i), &ms)
	}
	tl := timelineOf(&in.Traffic, &ms)
	if err := ms.err(); err != nil {
		return nil, err
	}
	r := &api.PlayResult{Seconds: micros(tl.end), Requests: len(tl.arrivals)}
	for i, l := range lanes {
		p, err := newPlay(l, &tl, in.Traffic.Retry)
		if err != nil {
			return nil, err
		}
		if err := p.run(ctx, fmt.Sprintf("/lanes/%d", i)); err != nil {
			return nil, err
		}
		r.Lanes = append(r.Lanes, p.result(in.Export))
	}
	return r, nil
}

// A play is one lane while it is played. Its limiter and store take the time from
// now.
type play struct {
	*lane
	now     bucket.Instant
	limiter *mete.Limiter
	request mete.Request
	end     bucket.Instant
	queue   queue // the requests to come

	writer *ratelimitfields.Writer // nil: denied clients do not come back

	decisions []decided
	levels    []api.Point
	late      int            // denied requests that would come back after the end
	never     int            // denied requests that no wait helps
	full      bucket.Instant // when the bucket is, if nothing comes after the last request
}

// A decided is a decision, with the cost that the request brought: 0 for none.
type decided struct {
	api.PlayDecision
	asked bucket.Tokens
}

// jitterKey makes the same client wait the same in all plays.
const jitterKey = "playground"

func newPlay(l *lane, tl *timeline, retry bool) (*play, error) {
	p := &play{lane: l, end: tl.end, queue: make(queue, len(tl.arrivals)), request: mete.Request{Attributes: policy.Map{"ip:address": Client}}}
	for i, a := range tl.arrivals {
		p.queue[i] = visit{arrival: a, order: i, client: i, try: 1}
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

// run takes every request at its instant, and looks at the bucket in between.
func (p *play) run(ctx context.Context, field string) error {
	for point := range Levels {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("playground: %w", err)
		}
		at := p.end * bucket.Instant(point) / (Levels - 1)
		for len(p.queue) > 0 && p.queue[0].at < at {
			if err := p.take(ctx, field); err != nil {
				return err
			}
		}
		next, err := p.look(ctx, at)
		if err != nil {
			return err
		}
		if following := p.end * bucket.Instant(point+1) / (Levels - 1); next > at && next < following && (len(p.queue) == 0 || p.queue[0].at >= next) {
			if err := p.step(ctx, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// look notes the level at an instant. If tokens come all at once, it returns the instant of
// the next ones, and 0 if they do not or the bucket is full.
func (p *play) look(ctx context.Context, at bucket.Instant) (next bucket.Instant, err error) {
	p.now = at
	d, err := p.limiter.Peek(ctx, p.request)
	if err != nil {
		return 0, fmt.Errorf("playground: %w", err)
	}
	p.levels = append(p.levels, api.Point{After: time.Duration(at) * time.Microsecond, Level: api.Amount(levelOf(d.Limits()[0].Snapshot))})
	s := &d.Limits()[0]
	if s.Snapshot.Limit.Algorithm() != bucket.Stepped || s.Missing() == 0 {
		return 0, nil
	}
	return at.Add(s.Earliest(s.Room() + 1)), nil
}

// step notes the level right before tokens come all at once, and when they are there:
// between two looks it does not rise little by little.
func (p *play) step(ctx context.Context, at bucket.Instant) error {
	for _, at := range []bucket.Instant{at - 1, at} {
		if _, err := p.look(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// take decides about the request that is next.
func (p *play) take(ctx context.Context, field string) error {
	v := heap.Pop(&p.queue).(visit)
	p.now = v.at
	req := p.request
	req.Cost = mete.TokensOf(v.cost)
	d, err := p.limiter.Take(ctx, req)
	if err != nil {
		return fmt.Errorf("playground: %w", err)
	}
	status := &d.Limits()[0]
	p.decisions = append(p.decisions, decided{api.PlayDecision{
		At: v.at, Allowed: d.Allowed, RetryAfter: d.RetryAfter, Remaining: status.Room().Whole(), Wait: d.Wait,
		Before: levelOf(status.Without()), Level: levelOf(status.Snapshot), Cost: status.Cost, Client: v.client, Try: v.try,
	}, v.cost})
	p.full = v.at.Add(status.FullAfter())
	switch {
	case d.Allowed:
		return nil
	case d.RetryAfter == bucket.Never:
		p.never++
		return nil
	case p.writer == nil:
		return nil
	}
	return p.comeBack(v, &d, field)
}

// comeBack makes a denied client come again after its Retry-After.
func (p *play) comeBack(v visit, d *mete.Decision, field string) error {
	header := http.Header{}
	p.writer.Header(header, d, strconv.Itoa(v.client))
	wait, err := strconv.ParseInt(header.Get("Retry-After"), 10, 64)
	if err != nil {
		return fmt.Errorf("playground: retry-after: %w", err)
	}
	if wait >= int64((p.end-v.at+second-1)/second) {
		p.late++
		return nil
	}
	if len(p.decisions)+len(p.queue) >= MaxRequests {
		return Mistakes{api.Mistake{Pointer: field, Detail: fmt.Sprintf("with those that come back there are more than %d requests", MaxRequests),
			Hint: "let fewer come, raise the limit, or let nobody come back"}}
	}
	v.at += bucket.Instant(wait) * second
	v.order, v.try = len(p.decisions)+MaxRequests, v.try+1
	heap.Push(&p.queue, v)
	return nil
}

// levelOf returns the level of a bucket without its queue: below 0 if it owes.
func levelOf(s bucket.Snapshot) bucket.Tokens { return s.Limit.Capacity() - s.Missing() }

// A visit is a request that will come, for the first time or again.
type visit struct {
	arrival
	order  int // among those of one instant
	client int
	try    int
}

// queue is a heap of visits, by time.
type queue []visit

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(v any)   { *q = append(*q, v.(visit)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// micros is how long after the beginning an instant is.
func micros(at bucket.Instant) api.Seconds { return api.Seconds(time.Duration(at) * time.Microsecond) }
