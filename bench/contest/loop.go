// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject/remote"
)

// A Loop measures a limiter with callers that each send the next take after the last answer.
type Loop struct {
	// Open returns a limiter whose store is empty.
	Open func(context.Context) (remote.Limiter, error)

	// Settle, if not nil, runs before the measurement, after all keys are known.
	Settle func(context.Context) error

	// CPU, if not nil, returns the total processor time of the server.
	CPU func(context.Context) (time.Duration, error)
}

const fillers = 16

// WarmUp is the share of the time, 1/WarmUp, in which callers take but nothing is measured, while connections
// open and batches find their size.
const WarmUp = 4

// Turn measures once. No other limiter is alive during the turn. The limiter must allow every key once, and
// then answer as the scenario wants.
func (l Loop) Turn(ctx context.Context, task Task) (Sample, error) {
	limiter, err := l.Open(ctx)
	if err != nil {
		return Sample{}, err
	}
	defer limiter.Close()
	if err := task.check(limiter); err != nil {
		return Sample{}, err
	}
	if l.Settle != nil {
		if err := l.Settle(ctx); err != nil {
			return Sample{}, err
		}
	}
	if _, _, err := task.runTogether(limiter, task.Time/WarmUp); err != nil {
		return Sample{}, err
	}
	runtime.GC()
	before, err := l.cpu(ctx)
	if err != nil {
		return Sample{}, err
	}
	latencies, elapsed, err := task.runTogether(limiter, task.Time)
	if err != nil {
		return Sample{}, err
	}
	after, err := l.cpu(ctx)
	if err != nil {
		return Sample{}, err
	}
	sample := NewSample(latencies, elapsed)
	sample.CPU = (after - before) / time.Duration(latencies.Total())
	return sample, nil
}

// NewSample summarizes the latencies of at least one take, and the time until the last answer.
func NewSample(latencies *report.Histogram, elapsed time.Duration) Sample {
	return Sample{
		Takes: float64(latencies.Total()) / elapsed.Seconds(),
		P50:   latencies.Percentile(0.5),
		P99:   latencies.Percentile(0.99),
	}
}

func (l Loop) cpu(ctx context.Context) (time.Duration, error) {
	if l.CPU == nil {
		return 0, nil
	}
	return l.CPU(ctx)
}

// check takes once from every key, which must be allowed, and then once more from one key, which must get the
// answer of the measurement.
func (t Task) check(limiter remote.Limiter) error {
	var group errorGroup
	for g := range fillers {
		group.Go(func() error {
			take, keys := limiter.Caller(), make([]string, len(t.known))
			for i := g; i < t.known.Len(); i += fillers {
				t.known.Put(keys, i)
				if err := expect(take, keys, true); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	keys := make([]string, len(t.known))
	t.known.Put(keys, 0)
	return expect(limiter.Caller(), keys, t.Scenario.Wanted())
}

// runTogether lets the callers take until d has passed. It returns the latencies, and the time until the last answer.
func (t Task) runTogether(limiter remote.Limiter, d time.Duration) (*report.Histogram, time.Duration, error) {
	latencies := make([]report.Histogram, t.Callers)
	var group errorGroup
	ready := make(chan struct{})
	var began time.Time
	for g := range t.Callers {
		take, at := limiter.Caller(), g*t.random.Len()/t.Callers
		group.Go(func() error {
			<-ready
			return t.caller(take, at, began, d, &latencies[g])
		})
	}
	began = time.Now()
	close(ready)
	err := group.Wait()
	elapsed := time.Since(began)
	for g := 1; g < t.Callers; g++ {
		latencies[0].Merge(&latencies[g])
	}
	return &latencies[0], elapsed, err
}

// caller is one caller. The end of a take is the start of the next one: it reads the clock once per take.
func (t Task) caller(take remote.Take, at int, began time.Time, d time.Duration, latencies *report.Histogram) error {
	keys, wanted, end := make([]string, len(t.random)), t.Scenario.Wanted(), t.random.Len()
	for last := time.Since(began); last < d; {
		t.random.Put(keys, at)
		if err := expect(take, keys, wanted); err != nil {
			return err
		}
		now := time.Since(began)
		latencies.Add(now - last)
		last = now
		if at++; at == end {
			at = 0
		}
	}
	return nil
}

var errAnswer = errors.New("wrong answer")

func expect(take remote.Take, keys []string, want bool) error {
	allowed, err := take(keys)
	if err != nil {
		return fmt.Errorf("take %q: %w", keys, err)
	}
	if allowed != want {
		return fmt.Errorf("take %q: %w: allowed = %v", keys, errAnswer, allowed)
	}
	return nil
}

type errorGroup struct {
	wg   sync.WaitGroup
	once sync.Once
	err  error
}

func (g *errorGroup) Go(f func() error) {
	g.wg.Go(func() {
		if err := f(); err != nil {
			g.once.Do(func() { g.err = err })
		}
	})
}

func (g *errorGroup) Wait() error {
	g.wg.Wait()
	return g.err
}
