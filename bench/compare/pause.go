// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

// pauseKeys is the number of keys that the probe adds.
const pauseKeys = 5_000_000

// promised is the maximum time that a decision may wait for internal work of the store.
const promised = time.Millisecond

// durations holds a histogram and the number of durations above promised.
type durations struct {
	report.Histogram
	over int64
}

func (h *durations) add(d time.Duration) {
	h.Add(d)
	if d > promised {
		h.over++
	}
}

func (h *durations) merge(o *durations) {
	h.Merge(&o.Histogram)
	h.over += o.over
}

// pause fills an empty store of mete from two goroutines and prints the durations of single calls. For
// comparison, loops that only read the clock show the pauses of the machine.
func pause(w, progress io.Writer) error {
	limiter, err := subject.All[0].New(subject.Allow)
	if err != nil {
		return err
	}
	defer limiter.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	fmt.Fprintf(progress, "pause: %d keys\n", pauseKeys)
	keys := workload.Each(pauseKeys)
	runtime.GC()

	var calls, noise [procs]durations
	before := heap()
	took := runTogether(procs, func(g int) {
		for i := g; i < pauseKeys; i += procs {
			start := time.Now()
			limiter.Take(keys.At(i))
			calls[g].add(time.Since(start))
		}
	})
	after := heap()
	runtime.GC()
	runTogether(procs, func(g int) {
		for began := time.Now(); ; {
			start := time.Now()
			noise[g].add(time.Since(start))
			if start.Sub(began) > took {
				return
			}
		}
	})
	rows := report.Table{{"", "p50", "p99", "p99.9", "p99.99", "max", fmt.Sprintf("over %v", promised), "of"}}
	for _, row := range []struct {
		name  string
		parts *[procs]durations
	}{{"a new key in mete", &calls}, {"the clock alone", &noise}} {
		all := &row.parts[0]
		for g := 1; g < procs; g++ {
			all.merge(&row.parts[g])
		}
		rows.Add(row.name, all.Percentile(0.5).String(), all.Percentile(0.99).String(), all.Percentile(0.999).String(),
			all.Percentile(0.9999).String(), all.Max().String(), fmt.Sprint(all.over), fmt.Sprint(all.Total()))
	}
	fmt.Fprintf(w, "### The longest calls while %d keys are filled in by %d goroutines\n\n", pauseKeys, procs)
	rows.Write(w)
	fmt.Fprintf(w, "\nIt took %v, with %d collections that stopped the world for %v in all.\n", took.Round(time.Millisecond),
		after.NumGC-before.NumGC, time.Duration(after.PauseTotalNs-before.PauseTotalNs))
	return nil
}
