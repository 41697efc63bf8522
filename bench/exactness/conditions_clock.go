// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"sync"
	"time"

	"github.com/metehq/mete/bench/exactness/clock"
)

func runParallel(r *run) {
	const callers, rounds = 64, 12
	r.startStore()
	n := r.start(r.clock)
	for range rounds {
		begin := make(chan struct{})
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				<-begin
				r.take(n, "k")
			})
		}
		close(begin)
		all.Wait()
		r.pause(200 * time.Millisecond)
	}
	r.probeNew(n, 0, "alone")
}

// pace is the mean time between takes of one caller: 66 takes a second, for a limit of 10.
const pace = 15 * time.Millisecond

// traffic calls take at random intervals around [pace] for a time. With a number of takes instead, slow calls would
// lengthen the run, and some figures grow with every second.
func (r *run) traffic(d time.Duration, take func()) {
	for end := time.Now().Add(d); time.Now().Before(end); r.pause(pace) {
		take()
	}
}

func runSkew(r *run) {
	r.startStore()
	ahead := clock.New(r.t)
	ahead.Set(shift)
	nodes := []Node{r.start(r.clock), r.start(ahead)}
	for _, n := range nodes {
		for range 15 {
			r.take(n, "k")
		}
	}
	r.traffic(3*time.Second, func() { r.take(nodes[r.rng.IntN(2)], "k") })
	r.probeNew(nodes[0], 0, "first")
	r.probeNew(nodes[1], 0, "second")
}

func runStep(r *run) {
	r.startStore()
	n := r.start(r.clock)
	r.traffic(1200*time.Millisecond, func() { r.take(n, "k") })
	spent := probeNames("spent")
	r.spend(n, append(spent, "k")) // at once, because a window of 1 s must not end before the step
	r.clock.Set(-shift)
	r.traffic(3*time.Second, func() { r.take(n, "k") })
	r.probe(n, 0, spent)
}

// spend takes all tokens of the keys.
func (r *run) spend(n Node, keys []string) {
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			for range 15 {
				r.take(n, key)
			}
		})
	}
	all.Wait()
}
