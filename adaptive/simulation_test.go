// SPDX-License-Identifier: Apache-2.0

package adaptive_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/adaptive"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// A simulation is a server behind a scaled limit. It serves requests from a queue one at a time, with a fixed
// delay. Clients arrive at random and do not retry. The clock is virtual and the random numbers are seeded.
type simulation struct {
	t       *testing.T
	now     bucket.Instant
	control *adaptive.Controller
	r       *rand.Rand

	limit bucket.Limit
	state bucket.State

	delay   int64   // of every request, in µs
	serves  float64 // requests per second
	fails   float64 // share of requests
	offered float64 // requests per second

	free   bucket.Instant // when the server has served its queue
	queue  []request      // by when they end
	passed int
}

type request struct {
	begin, end bucket.Instant
	err        error
}

var errServer = errors.New("server failed")

// limitPerSecond is the limit at a factor of 1.
const limitPerSecond = 1000

func simulate(t *testing.T, config adaptive.Config) *simulation {
	t.Helper()
	s := &simulation{t: t, now: 1e15, r: rand.New(testseed.PCG(20260101, 9)), delay: 10_000, serves: 2000}
	config.Now = func() bucket.Instant { return s.now }
	var err error
	if s.control, err = adaptive.New(config); err != nil {
		t.Fatal(err)
	}
	if s.limit, err = bucket.NewLimit(100*bucket.Token, bucket.PerSecond(limitPerSecond*bucket.Token)); err != nil {
		t.Fatal(err)
	}
	return s
}

// run simulates so many seconds, and returns the smallest and the largest factor.
func (s *simulation) run(seconds float64) (least, most float64) {
	least, most = 1, 0
	s.passed = 0
	for until := s.now + bucket.Instant(seconds*1e6); s.now < until; {
		next := until
		if s.offered > 0 {
			next = min(until, s.now+1+bucket.Instant(s.r.ExpFloat64()*1e6/s.offered))
		}
		s.endUntil(next)
		if s.now = next; s.now < until {
			s.arrive()
		}
		factor := s.control.Factor()
		least, most = min(least, factor), max(most, factor)
	}
	return least, most
}

func (s *simulation) arrive() {
	after, snap := s.limit.Take(s.state, s.now, s.control.Scale(bucket.Token))
	if !snap.Allowed {
		return
	}
	s.state = after
	s.passed++
	s.free = max(s.free, s.now) + bucket.Instant(1e6/s.serves)
	q := request{begin: s.now, end: s.free + bucket.Instant(s.delay)}
	if s.r.Float64() < s.fails {
		q.err = errServer
	}
	s.queue = append(s.queue, q)
}

// endUntil ends the requests that are done by then.
func (s *simulation) endUntil(then bucket.Instant) {
	for len(s.queue) > 0 && s.queue[0].end <= then {
		q := s.queue[0]
		s.queue = s.queue[1:]
		s.now = max(s.now, q.end)
		s.control.Observe(time.Duration(s.now-q.begin)*time.Microsecond, q.err)
	}
}

// settles runs until the factor is at least want, and returns the seconds.
func (s *simulation) settles(want float64) int {
	s.t.Helper()
	for seconds := range 1000 {
		if s.control.Factor() >= want {
			return seconds
		}
		s.run(1)
	}
	s.t.Fatalf("the factor is %.3f after 1000 s, want %v", s.control.Factor(), want)
	return 0
}

// laws are the defaults of both laws.
var laws = []struct {
	name   string
	config adaptive.Config
}{
	{"aimd", adaptive.Config{Target: 100 * time.Millisecond}},
	{"gradient", adaptive.Config{Law: adaptive.LawGradient}},
}

// TestSimulation_Overload raises the load above the server's capacity, and later restores the capacity.
func TestSimulation_Overload(t *testing.T) {
	for _, law := range laws {
		for _, server := range []struct {
			serves float64
			delay  int64
		}{{200, 10_000}, {200, 50_000}, {400, 10_000}, {800, 50_000}} {
			t.Run(fmt.Sprintf("%s, %v/s, %d µs", law.name, server.serves, server.delay), func(t *testing.T) {
				s := simulate(t, law.config)
				s.delay, s.offered = server.delay, 300
				if least, _ := s.run(60); least != 1 {
					t.Errorf("the factor fell to %.3f without overload", least)
				}
				s.offered, s.serves = 1200, server.serves
				s.run(150) // what has queued up until the factor is low enough must go
				swings(t, s)
				s.serves = 2000
				recovers(t, s)
			})
		}
	}
}

// swings asserts the documented band for five minutes.
func swings(t *testing.T, s *simulation) {
	t.Helper()
	least, most := s.run(300)
	good := s.serves / limitPerSecond
	used := float64(s.passed) / 300 / s.serves
	t.Logf("factor %.3f to %.3f of what the server can do, of which %.3f is used", least/good, most/good, used)
	if least < 0.8*good || most > 1.15*good {
		t.Errorf("the factor swings from %.3f to %.3f of what the server can do, want from 0.8 to 1.15", least/good, most/good)
	}
	if used < 0.94 {
		t.Errorf("%.3f of what the server can do is used, want at least 0.94", used)
	}
}

// recovers asserts that the factor returns to 1 and stays there: within (1 − floor)/step intervals plus ten for
// the queue.
func recovers(t *testing.T, s *simulation) {
	t.Helper()
	seconds := s.settles(1)
	t.Logf("recovered after %d s", seconds)
	if seconds > 100 {
		t.Errorf("the factor was back at 1 after %d s, want at most 100", seconds)
	}
	if least, _ := s.run(60); least != 1 {
		t.Errorf("after the recovery the factor fell to %.3f", least)
	}
}

// TestSimulation_Failures fails every second request for a while: the factor drops to the floor and never below.
func TestSimulation_Failures(t *testing.T) {
	for _, law := range laws {
		t.Run(law.name, func(t *testing.T) {
			s := simulate(t, law.config)
			s.offered = 1200
			s.fails = 0.02 // of 1000 per second: never 5% in a second
			if least, _ := s.run(60); least != 1 {
				t.Errorf("2 %% failures: the factor fell to %.3f, want 1", least)
			}
			s.fails = 0.5
			s.run(60) // 22 cuts of 0.9, each after two intervals
			if least, most := s.run(300); least < 0.0999 || most > 0.1001 {
				t.Errorf("50 %% failures: factor %.4f to %.4f, want the floor of 0.1", least, most)
			}
			s.fails = 0
			recovers(t, s)
		})
	}
}

// TestSimulation_SlowerForGood makes every request five times slower, regardless of the load. A gradient
// adapts, and AIMD has a target for it.
func TestSimulation_SlowerForGood(t *testing.T) {
	s := simulate(t, adaptive.Config{Law: adaptive.LawGradient})
	s.offered = 300
	s.run(60)
	s.delay = 50_000
	if least, _ := s.run(120); least > 0.2 {
		t.Errorf("the factor fell only to %.3f", least)
	}
	seconds := s.settles(1)
	t.Logf("believed after %d s", 120+seconds)
	if seconds > 180 {
		t.Errorf("the factor was back at 1 after %d s more, want at most 180", seconds)
	}
}

// TestSimulation_Idle: intervals without requests change nothing, and a few requests are enough.
func TestSimulation_Idle(t *testing.T) {
	for _, law := range laws {
		t.Run(law.name, func(t *testing.T) {
			s := simulate(t, law.config)
			s.offered, s.fails = 1200, 0.5
			s.run(20)
			s.offered, s.fails = 0, 0
			s.run(1) // what is under way ends
			before := s.control.Factor()
			if least, most := s.run(86_400); least != before || most != before {
				t.Errorf("a silent day moved the factor from %v to %v..%v", before, least, most)
			}
			s.offered = 5 // ten take two seconds
			s.run(60)
			if got := s.control.Factor(); got < before+0.2 || got > before+0.35 {
				t.Errorf("a minute of 5/s moved the factor from %.3f to %.3f, want about 0.3 more", before, got)
			}
		})
	}
}
