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
	r.probe(n, 0, "alone")
}

// pace is the mean time between takes of one caller: 66 takes a second, for a limit of 10.
const pace = 15 * time.Millisecond

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
	for range 200 {
		r.take(nodes[r.rng.IntN(2)], "k")
		r.pause(pace)
	}
	r.probe(nodes[0], 0, "alone0")
	r.probe(nodes[1], 0, "alone1")
}

func runStep(r *run) {
	r.startStore()
	n := r.start(r.clock)
	for range 80 {
		r.take(n, "k")
		r.pause(pace)
	}
	r.clock.Set(-shift)
	for range 200 {
		r.take(n, "k")
		r.pause(pace)
	}
	r.probe(n, 0, "k")
}
