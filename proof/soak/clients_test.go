// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// A tally counts answers.
type tally struct {
	admitted, denied, unavailable, passed atomic.Int64
	batched, echoed, left, overridden     atomic.Int64
}

func (t *tally) String() string {
	var b strings.Builder
	for _, n := range []struct {
		name  string
		count *atomic.Int64
	}{
		{"admitted", &t.admitted}, {"denied", &t.denied}, {"unavailable", &t.unavailable}, {"through the gateway", &t.passed},
		{"in batches", &t.batched}, {"echoed", &t.echoed}, {"left by their clients", &t.left}, {"overrides", &t.overridden},
	} {
		fmt.Fprintf(&b, "%s %d, ", n.name, n.count.Load())
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// clients returns all concurrent clients: about 250 requests per second in total.
func (w *world) clients() []func(context.Context) {
	var all []func(context.Context)
	for i := range 8 { // two per bucket: one through the API, one through the gateway
		all = append(all, w.greedy("steady", fmt.Sprint("s", i%4), steadyLimit, i%2 == 0))
	}
	for i := range 4 {
		all = append(all, w.greedy("leased", "l", leasedLimit, i%2 == 0))
		all = append(all, w.greedy("window", fmt.Sprint("w", i%2), windowLimit, i < 2))
		all = append(all, w.honest(fmt.Sprint("h", i)))
	}
	for i := range 2 {
		name := fmt.Sprint(i)
		all = append(all, w.subscriber("p"), w.patient("patient"+name), w.paced("paced"+name), w.member("t"+name))
		all = append(all, w.openClient, w.localClient)
	}
	return append(all, w.crowd, w.fickle, w.echoer, w.operator)
}

// greedy asks for more than its bucket has, in turns by the gateway and the API,
// or by the API alone.
func (w *world) greedy(rule, key string, l limit, both bool) func(context.Context) {
	return func(ctx context.Context) {
		n := 0
		every(ctx, 80*time.Millisecond, func() {
			n++
			var a answer
			if both && n%2 == 0 {
				a = w.pass("X-"+rule, key)
			} else {
				a, _ = w.take(w.api, map[string]string{"header:x-" + rule: key})
			}
			if w.closed("greedy for "+rule, a) == admitted {
				w.books.add(rule+" "+key, l, 0, grant{a.begin, a.end})
			}
		})
	}
}

// subscriber sends as many requests as it can to a bucket with a changing limit. It uses the gateway
// alone, because two servers do not change at the same instant.
func (w *world) subscriber(key string) func(context.Context) {
	most := planLimits[1]
	return func(ctx context.Context) {
		every(ctx, 80*time.Millisecond, func() {
			a := w.pass("X-Plan", key)
			if w.closed("subscriber", a) == admitted {
				w.books.add("plan "+key, most, most.capacity-planLimits[0].capacity, grant{a.begin, a.end})
			}
		})
	}
}

// openClient is never turned away.
func (w *world) openClient(ctx context.Context) {
	every(ctx, 200*time.Millisecond, func() {
		if a := w.pass("X-Open", "o"); w.open("under an open rule", a) == denied {
			w.wrongs.add("under an open rule: denied, far below its limit: %.300s", a.body)
		}
	})
}

// localClient sends as many requests as it can to a bucket that each server keeps by itself during an
// outage. Its answers report that.
func (w *world) localClient(ctx context.Context) {
	every(ctx, 80*time.Millisecond, func() {
		a, d := w.take(w.api, map[string]string{"header:x-local": "l"})
		if w.open("under a local rule", a) != admitted {
			return
		}
		book := "local"
		if d.Degraded {
			book = "local, without the store"
			if !w.outages.during(a.span) {
				w.wrongs.add("under a local rule: degraded while the store was there: %s", a.body)
			}
		}
		w.books.add(book, localLimit, 0, grant{a.begin, a.end})
	})
}
