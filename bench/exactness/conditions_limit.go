// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"time"
)

func runChange(r *run) {
	r.startStore()
	n := r.start(r.clock)
	for range 15 {
		r.take(n, "k")
	}
	if !r.change(n, "k", perSecond) {
		return
	}
	r.traffic(2500*time.Millisecond, func() { r.take(n, "k") })
	if !r.change(n, "k", perMinute) {
		return
	}
	for range 20 {
		r.take(n, "k")
		r.pause(pace)
	}
	spent := probeNames("spent")
	r.spend(n, spent)
	if r.change(n, "k", perSecond) {
		r.probe(n, 0, spent)
	}
}

// runTwo lets each limit deny requests that the other would admit.
func runTwo(r *run) {
	r.startStore()
	n := r.start(r.clock)
	take := func(user string, times int) {
		for range times {
			r.take(n, user, "team")
			r.pause(time.Millisecond)
		}
	}
	take("u1", 20) // 10 pass; the user's limit denies the others
	take("u2", 10)
	take("u3", 10)
	take("u4", 10) // the team has no tokens left
	for range 10 {
		r.take(n, "u4") // without the team
	}
}
