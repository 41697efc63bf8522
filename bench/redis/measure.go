// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inredis"
)

// A measurement is one subject's turn in one round of a cell.
type measurement struct {
	scenario scenario
	subject  inredis.Subject
	known    calls // every key
	random   calls
	callers  int
	time     time.Duration
}

// A sample is what came of it.
type sample struct {
	takes    float64 // a second
	p50, p99 time.Duration
	cpu      time.Duration // of the server, a take
}

// fillers is how many callers ask for every key beforehand.
const fillers = 16

// warmUp is the part of the time that callers take without being measured:
// connections are opened and batches find their size.
const warmUp = 4

// run measures on an empty server. No other subject is alive meanwhile.
func (m measurement) run(ctx context.Context, srv *server) (sample, error) {
	limiter, err := m.subject.New(srv.addr, m.scenario.quota)
	if err != nil {
		return sample{}, err
	}
	defer limiter.Close()
	if err := m.check(limiter); err != nil {
		return sample{}, err
	}
	if _, _, err := m.together(limiter, m.callers, m.time/warmUp); err != nil {
		return sample{}, err
	}
	runtime.GC()
	before, err := srv.cpu(ctx)
	if err != nil {
		return sample{}, err
	}
	latencies, elapsed, err := m.together(limiter, m.callers, m.time)
	if err != nil {
		return sample{}, err
	}
	after, err := srv.cpu(ctx)
	if err != nil {
		return sample{}, err
	}
	takes := latencies.Total()
	return sample{
		takes: float64(takes) / elapsed.Seconds(),
		p50:   latencies.Percentile(0.5),
		p99:   latencies.Percentile(0.99),
		cpu:   (after - before) / time.Duration(takes),
	}, nil
}

// check asks for every key once, which must be allowed, and for one of them once
// more, which must be answered as all calls of the measurement.
func (m measurement) check(limiter inredis.Limiter) error {
	var group errorGroup
	for g := range fillers {
		group.Go(func() error {
			take, keys := limiter.Caller(), make([]string, len(m.known))
			for i := g; i < m.known.len(); i += fillers {
				m.known.put(keys, i)
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
	keys := make([]string, len(m.known))
	m.known.put(keys, 0)
	return expect(limiter.Caller(), keys, m.wanted())
}

// wanted is the answer to every call but a key's first.
func (m measurement) wanted() bool { return m.scenario.quota != subject.Deny }

// together lets callers take until d has passed, each as soon as it is answered,
// and returns how long each take took, and how long it was until the last of
// them was answered.
func (m measurement) together(limiter inredis.Limiter, callers int, d time.Duration) (*report.Histogram, time.Duration, error) {
	latencies := make([]report.Histogram, callers)
	var group errorGroup
	ready := make(chan struct{})
	var began time.Time
	for g := range callers {
		take, at := limiter.Caller(), g*m.random.len()/callers
		group.Go(func() error {
			<-ready
			return m.loop(take, at, began, d, &latencies[g])
		})
	}
	began = time.Now()
	close(ready)
	err := group.Wait()
	elapsed := time.Since(began)
	for g := 1; g < callers; g++ {
		latencies[0].Merge(&latencies[g])
	}
	return &latencies[0], elapsed, err
}

// loop is one caller. The end of one take is the start of the next: the clock is
// read once a take.
func (m measurement) loop(take inredis.Take, at int, began time.Time, d time.Duration, latencies *report.Histogram) error {
	keys, wanted, end := make([]string, len(m.random)), m.wanted(), m.random.len()
	for last := time.Since(began); last < d; {
		m.random.put(keys, at)
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

func expect(take inredis.Take, keys []string, want bool) error {
	allowed, err := take(keys)
	if err != nil {
		return fmt.Errorf("take %q: %w", keys, err)
	}
	if allowed != want {
		return fmt.Errorf("take %q: %w: allowed = %v", keys, errAnswer, allowed)
	}
	return nil
}

// An errorGroup waits for goroutines, and keeps the first error.
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
