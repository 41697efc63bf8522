// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

// procs is the number of goroutines and processors of parallel figures.
const procs = 2

// chunk is the number of calls between two readings of the clock.
const chunk = 1024

// A sample holds the figures of one subject in one round.
type sample struct {
	serial, parallel float64 // wall time in ns per call, over all goroutines
	allocs           float64 // allocations per call, serial
	bytes, objects   float64 // heap per key, after a collection
	wrong            int     // answers that break the quota
}

// measure runs one round of a scenario for one subject. No other subject is alive, because the garbage
// collector would scan its heap, too.
func measure(sc scenario, sub subject.Subject, calls workload.Keys, d time.Duration) (sample, error) {
	switch sc.kind {
	case churn:
		return measureChurn(sc, sub, calls)
	case memory:
		return measureMemory(sc, sub, calls)
	default:
		return measureSteady(sc, sub, calls, d)
	}
}

func measureSteady(sc scenario, sub subject.Subject, calls workload.Keys, d time.Duration) (s sample, err error) {
	limiter, err := sub.New(sc.quota)
	if err != nil {
		return s, err
	}
	defer limiter.Close()
	fill(limiter, workload.Each(sc.keys))
	runtime.GC()

	run := func(goroutines int, d time.Duration) (nsPerCall float64, total int) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(goroutines))
		workers := make([]worker, goroutines)
		elapsed := runTogether(goroutines, func(g int) {
			w := worker{limiter: subject.For(limiter), calls: calls, at: g * calls.Len() / goroutines, want: sc.quota != subject.Deny}
			for start := time.Now(); time.Since(start) < d; {
				w.run(chunk)
			}
			workers[g] = w
		})
		for _, w := range workers {
			total += w.done
			s.wrong += w.wrong
		}
		return float64(elapsed) / float64(total), total
	}
	run(1, d/10)
	before := heap()
	serial, total := run(1, d)
	s.serial, s.allocs = serial, float64(heap().Mallocs-before.Mallocs)/float64(total)
	run(procs, d/10)
	s.parallel, _ = run(procs, d)
	if s.allocs < 0.001 {
		s.allocs = 0 // of the harness itself
	}
	return s, nil
}

func measureChurn(sc scenario, sub subject.Subject, calls workload.Keys) (s sample, err error) {
	run := func(goroutines int) (nsPerCall, allocs float64, err error) {
		limiter, err := sub.New(sc.quota)
		if err != nil {
			return 0, 0, err
		}
		defer limiter.Close()
		runtime.GC()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(goroutines))
		workers := make([]worker, goroutines)
		before, share := heap(), calls.Len()/goroutines
		elapsed := runTogether(goroutines, func(g int) {
			w := worker{limiter: subject.For(limiter), calls: calls, at: g * share, want: true}
			w.run(share)
			workers[g] = w
		})
		for _, w := range workers {
			s.wrong += w.wrong
		}
		total := float64(share * goroutines)
		return float64(elapsed) / total, float64(heap().Mallocs-before.Mallocs) / total, nil
	}
	if s.serial, s.allocs, err = run(1); err != nil {
		return s, err
	}
	s.parallel, _, err = run(procs)
	return s, err
}

func measureMemory(sc scenario, sub subject.Subject, calls workload.Keys) (s sample, err error) {
	before := heapAfterGC()
	limiter, err := sub.New(sc.quota)
	if err != nil {
		return s, err
	}
	fill(limiter, calls)
	after := heapAfterGC()
	runtime.KeepAlive(calls)
	limiter.Close()
	keys := float64(sc.keys)
	s.bytes = float64(int64(after.HeapAlloc-before.HeapAlloc)) / keys
	s.objects = float64(int64(after.HeapObjects-before.HeapObjects)) / keys
	return s, nil
}

// fill makes the limiter know the keys. It passes copies: no later lookup finds the stored string itself, and
// a limiter that keeps keys pays for them.
func fill(limiter subject.Limiter, keys workload.Keys) {
	for i := range keys.Len() {
		limiter.Take(strings.Clone(keys.At(i)))
	}
}

type worker struct {
	limiter     subject.Limiter
	calls       workload.Keys
	at          int // the index of the next call
	want        bool
	done, wrong int
}

func (w *worker) run(n int) {
	limiter, calls, at, end := w.limiter, w.calls, w.at, w.calls.Len()
	for range n {
		if limiter.Take(calls.At(at)) != w.want {
			w.wrong++
		}
		if at++; at == end {
			at = 0
		}
	}
	w.at, w.done = at, w.done+n
}

// runTogether runs f in n goroutines that start simultaneously, and returns the time until the last one is done.
func runTogether(n int, f func(g int)) time.Duration {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for g := range n {
		wg.Go(func() { <-start; f(g) })
	}
	began := time.Now()
	close(start)
	wg.Wait()
	return time.Since(began)
}

func heap() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}

// heapAfterGC collects twice, because finalizers and pools release memory in the second collection.
func heapAfterGC() runtime.MemStats {
	runtime.GC()
	runtime.GC()
	return heap()
}
