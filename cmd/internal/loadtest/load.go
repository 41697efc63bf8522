// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/store"
)

// Bounds and precision of the latency histogram, in nanoseconds and decimal digits.
const (
	leastLatency = 1
	mostLatency  = int64(10 * time.Minute)
	digits       = 3
)

// A load is the state of a running load test.
type load struct {
	options Options
	target  target

	next    atomic.Int64 // number of the next decision
	ended   atomic.Int64
	failed  atomic.Int64
	start   time.Time
	elapsed time.Duration
	due     int64       // decisions that an open loop should have started
	stopped atomic.Bool // no more decisions

	mu     sync.Mutex // guards the fields below
	counts counts
}

// counts are the results of one worker or of all workers.
type counts struct {
	latencies       *hdrhistogram.Histogram
	allowed, denied int64
	errors          map[string]*ErrorCount
}

func newCounts() counts {
	return counts{latencies: hdrhistogram.New(leastLatency, mostLatency, digits), errors: map[string]*ErrorCount{}}
}

func newLoad(o Options, t target) *load {
	return &load{options: o, target: t, counts: newCounts()}
}

// run makes decisions until ctx ends or the options' bounds are reached.
func (l *load) run(ctx context.Context) {
	calls := context.WithoutCancel(ctx) // calls in flight end by their own timeouts
	if l.options.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.options.Duration)
		defer cancel()
	}
	defer context.AfterFunc(ctx, func() { l.stopped.Store(true) })()
	l.start = time.Now()
	shown := l.show(ctx)
	var workers sync.WaitGroup
	for range l.options.Concurrency {
		workers.Go(func() { l.work(ctx, calls) })
	}
	workers.Wait()
	l.elapsed = time.Since(l.start)
	shown()
	if l.options.Rate > 0 {
		scheduled := l.elapsed
		if l.options.Duration > 0 {
			scheduled = min(scheduled, l.options.Duration)
		}
		l.due = int64(scheduled.Seconds() * l.options.Rate)
		if l.options.Count > 0 {
			l.due = min(l.due, l.options.Count)
		}
	}
}

// work makes decisions one after another.
func (l *load) work(ctx, calls context.Context) {
	c := newCounts()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for !l.stopped.Load() {
		i := l.next.Add(1) - 1
		if l.options.Count > 0 && i >= l.options.Count {
			break
		}
		begin := time.Now()
		if l.options.Rate > 0 {
			// The latency counts from here, even if all workers were busy.
			begin = l.start.Add(time.Duration(float64(i) / l.options.Rate * float64(time.Second)))
			if !sleepUntil(ctx, timer, begin) {
				break
			}
		}
		allowed, err := l.target.take(calls, keyOf(i, l.options.Keys))
		c.count(allowed, err, time.Since(begin))
		l.ended.Add(1)
		if err != nil {
			l.failed.Add(1)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.merge(&c)
}

// sleepUntil waits until t. It returns false if ctx ends first.
func sleepUntil(ctx context.Context, timer *time.Timer, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return true
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *counts) count(allowed bool, err error, latency time.Duration) {
	switch {
	case err != nil:
		kind := errorKind(err)
		e := c.errors[kind]
		if e == nil {
			e = &ErrorCount{Kind: kind, Example: err.Error()}
			c.errors[kind] = e
		}
		e.Count++
		return
	case allowed:
		c.allowed++
	default:
		c.denied++
	}
	_ = c.latencies.RecordValue(min(max(int64(latency), leastLatency), mostLatency)) // the value is within the bounds
}

func (c *counts) merge(d *counts) {
	c.latencies.Merge(d.latencies)
	c.allowed += d.allowed
	c.denied += d.denied
	for kind, e := range d.errors {
		if have := c.errors[kind]; have != nil {
			have.Count += e.Count
		} else {
			c.errors[kind] = e
		}
	}
}

// errorKind classifies an error in a few words.
func errorKind(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		if store.FailureOf(err) == store.FailureTimeout {
			return string(store.FailureTimeout)
		}
		if e.Status > 0 {
			return e.Kind.String() + " " + strconv.Itoa(e.Status)
		}
		return e.Kind.String()
	}
	return string(store.FailureOf(err))
}

// keyOf returns the key of the i'th decision, out of n keys. The sequence looks random, like the keys of real
// clients, and is the same in every run.
func keyOf(i int64, n int) int {
	x := uint64(i) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9 // splitmix64
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return int(x % uint64(n))
}
