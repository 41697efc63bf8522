// SPDX-License-Identifier: Apache-2.0

package pacer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/pacer"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// A server decides by one limit and announces it.
type server struct {
	limit  policy.Limit
	writer *ratelimitfields.Writer

	mu                sync.Mutex // guards the fields below
	state             bucket.State
	admitted, refused int
}

func newServer(t *testing.T, spec bucket.Spec, dialect string) *server {
	t.Helper()
	limit, _, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	w, err := ratelimitfields.New(ratelimitfields.Config{Dialects: []string{dialect}})
	if err != nil {
		t.Fatal(err)
	}
	return &server{limit: policy.Limit{Name: "l", Bucket: limit}, writer: w}
}

func (s *server) ask() pacer.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var snap bucket.Snapshot
	now := time.Now()
	s.state, snap = s.limit.Bucket.Take(s.state, bucket.At(now), bucket.Token)
	d := mete.Decision{Allowed: snap.Allowed, RetryAfter: snap.RetryAfter}.
		WithLimits(mete.Status{Rule: &policy.Rule{Name: "l"}, Limit: &s.limit, Snapshot: snap})
	if s.admitted++; !snap.Allowed {
		s.admitted--
		s.refused++
	}
	h := http.Header{}
	s.writer.Header(h, &d, "client")
	a := pacer.Answer{Refused: !snap.Allowed, Announced: ratelimitfields.Read(h, now)}
	a.Wait, a.HasWait = ratelimitfields.RetryAfter(h, now)
	return a
}

func lag(r *rand.Rand, mean, jitter time.Duration) time.Duration {
	return mean + time.Duration(r.Int64N(int64(2*jitter)+1)) - jitter
}

// run offers load requests per second in each client for that long.
func run(s *server, clients int, load float64, long time.Duration, mean, jitter time.Duration) {
	r := rand.New(testseed.PCG(1, 2))
	var group sync.WaitGroup
	var mu sync.Mutex
	random := func() time.Duration { mu.Lock(); defer mu.Unlock(); return lag(r, mean, jitter) }
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	for range clients {
		p := pacer.New()
		group.Go(func() {
			tick := time.NewTicker(time.Duration(float64(time.Second) * float64(clients) / load))
			defer tick.Stop()
			for ctx.Err() == nil {
				select {
				case <-tick.C:
				case <-ctx.Done():
					continue
				}
				group.Go(func() {
					ticket, err := p.Wait(ctx, time.Time{}, false)
					if err != nil {
						return
					}
					time.Sleep(random())
					a := s.ask()
					time.Sleep(random())
					p.RecordAnswer(ticket, a)
				})
			}
		})
	}
	group.Wait()
}

// share returns the percentage of refused requests, and of the limit that was used.
func (s *server) share(rate float64, long time.Duration) (refused, used float64) {
	return 100 * float64(s.refused) / float64(s.refused+s.admitted), 100 * float64(s.admitted) / (rate * long.Seconds())
}

func rate(n int, per time.Duration) bucket.Rate {
	return bucket.Rate{Tokens: bucket.Tokens(n) * bucket.Token, Per: per}
}

func tokenBucket(capacity, n int, per time.Duration) bucket.Spec {
	return bucket.Spec{Capacity: bucket.Tokens(capacity) * bucket.Token, Rate: rate(n, per)}
}

func fixedWindow(n int, per time.Duration) bucket.Spec {
	return bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: bucket.Tokens(n) * bucket.Token, Rate: rate(n, per)}
}

func sliding(a bucket.Algorithm, n int, per time.Duration) bucket.Spec {
	return bucket.Spec{Algorithm: a, Rate: rate(n, per)}
}

var specs = []struct {
	name string
	spec bucket.Spec

	least  float64 // of the limit that one client uses, in percent; 98 if zero
	shared float64 // that three clients use, together
	most   float64 // of their requests that are refused; 1.5 if zero
}{
	{name: "bucket 100/s of 20", spec: tokenBucket(20, 100, time.Second), shared: 92},
	{name: "bucket 10/s of 20", spec: tokenBucket(20, 10, time.Second), shared: 98, most: 6},
	{name: "bucket 10/s of 15", spec: tokenBucket(15, 10, time.Second), shared: 95, most: 6},
	// The announced second is rounded to the period itself, so three clients collide.
	{name: "bucket 1/s of 5", spec: tokenBucket(5, 1, time.Second), shared: 95, most: 20},
	{name: "window 100/10s", spec: fixedWindow(100, 10*time.Second), shared: 95},
	{name: "window 600/1m", spec: fixedWindow(600, time.Minute), shared: 95},
	// The end of each window is known only to within a round trip.
	{name: "window 50/1s", spec: fixedWindow(50, time.Second), least: 94, shared: 80},
	{name: "rollover 5/10s of 20", spec: bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: 20 * bucket.Token, Rate: rate(5, 10*time.Second)},
		shared: 95, most: 3},
	// One of the hundred is reserved.
	{name: "sliding window 100/10s", spec: sliding(bucket.AlgorithmSlidingWindow, 100, 10*time.Second), least: 97.5, shared: 85},
	{name: "sliding window 600/1m", spec: sliding(bucket.AlgorithmSlidingWindow, 600, time.Minute), shared: 90},
	// Tokens that others leave unused return one window later, and all clients fall back together.
	{name: "sliding log 100/10s", spec: sliding(bucket.AlgorithmSlidingLog, 100, 10*time.Second), shared: 50},
	{name: "leaky 10/s, queue 20", spec: bucket.Spec{Capacity: bucket.Token, Queue: 20 * bucket.Token, Rate: rate(10, time.Second)}, shared: 95, most: 4},
}

// At 120% of the limit, less than 1% of the requests are refused, and nearly the whole limit is used. Clients
// that share a key see each other only through the remainder.
func TestLoop(t *testing.T) {
	requests := 6000.0 // with fewer, the shares of other seeds differ by more than 1%
	if testing.Short() {
		requests = 1800
	}
	for _, tt := range specs {
		offered := float64(tt.spec.Rate.Tokens) / float64(bucket.Token) / tt.spec.Rate.Per.Seconds()
		long := max(100*time.Second, time.Duration(requests/offered)*time.Second)
		if tt.least == 0 {
			tt.least = 98
		}
		if tt.most == 0 {
			tt.most = 1.5
		}
		for _, dialect := range []string{"draft-11", "legacy", "x"} {
			for _, clients := range []int{1, 3} {
				if clients > 1 && dialect != "draft-11" {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %d", tt.name, dialect, clients), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := newServer(t, tt.spec, dialect)
						run(s, clients, 1.2*offered, long, 20*time.Millisecond, 10*time.Millisecond)
						refused, used := s.share(offered, long)
						t.Logf("refused %.2f %%, used %.2f %%", refused, used)
						if clients == 1 && (refused >= 1 || used < tt.least) {
							t.Errorf("refused %.2f %%, used %.2f %%, want less than 1 and at least %v", refused, used, tt.least)
						}
						if clients > 1 && (refused >= tt.most || used < tt.shared) {
							t.Errorf("refused %.2f %%, used %.2f %%, want less than %v and at least %v", refused, used, tt.most, tt.shared)
						}
					})
				})
			}
		}
	}
}
