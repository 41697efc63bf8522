// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bench/exactness/judge"
)

var limit = judge.Limit{Capacity: 10, Period: time.Second}

// start is the start of a window of every aligned limiter.
var start = time.Unix(1_800_000_000, 0)

// A model is a correct limiter, with an error that a test adds.
type model struct {
	shape     judge.Shape
	surplus   int // tokens that it admits above its promise
	shortfall int // tokens that it loses once

	level  float64
	last   time.Time
	window time.Time
	count  int
	log    []time.Time
}

func (m *model) take(now time.Time) bool {
	capacity := limit.Capacity + m.surplus - m.shortfall
	switch m.shape {
	case judge.Bucket:
		if m.last.IsZero() {
			m.level = float64(capacity)
		} else {
			m.level = min(float64(capacity), m.level+float64(limit.Capacity)*now.Sub(m.last).Seconds())
		}
		m.last = now
		if m.level < 1-1e-9 {
			return false
		}
		m.level--
		return true
	case judge.Log:
		for len(m.log) > 0 && now.Sub(m.log[0]) >= limit.Period {
			m.log = m.log[1:]
		}
		if len(m.log) >= capacity {
			return false
		}
		m.log = append(m.log, now)
		return true
	default:
		ends := m.window.Add(limit.Period)
		if m.window.IsZero() || !now.Before(ends) {
			m.count, m.window = 0, now
			if m.shape == judge.Epoch {
				m.window = now.Truncate(limit.Period)
			}
		}
		if m.count >= capacity {
			return false
		}
		m.count++
		return true
	}
}

// record asks the model at random instants. Calls start up to 3 ms before the decision and end up to 3 ms after it.
func record(m *model, seed uint64) *judge.History {
	rng := rand.New(rand.NewPCG(seed, 0))
	h := new(judge.History)
	doubt := func() time.Duration { return time.Duration(rng.IntN(3_000_000)) }
	now := start.Add(500 * time.Millisecond)
	for range 400 {
		if rng.IntN(40) == 0 {
			now = now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
		}
		now = now.Add(time.Duration(rng.IntN(20_000_000)))
		t := judge.Take{Charges: []judge.Charge{{Key: "k", Limit: limit}}, Called: now.Add(-doubt()), Done: now.Add(doubt())}
		if !m.take(now) {
			t.Outcome = judge.Denied
		}
		h.Add(t)
	}
	return h
}

// In the map, Counter and Capped are left out: their models would be those of Bucket and FirstHit.
var shapes = map[string]judge.Shape{"bucket": judge.Bucket, "first hit": judge.FirstHit, "epoch": judge.Epoch, "log": judge.Log}

func TestCorrectLimitersHaveNoFaults(t *testing.T) {
	for name, shape := range shapes {
		for seed := range uint64(20) {
			h := record(&model{shape: shape}, seed)
			if excess, lost := h.Excess(shape), h.Lost(shape); excess != 0 || lost != 0 {
				t.Fatalf("%s, seed %d: %d above, %d lost, want none", name, seed, excess, lost)
			}
		}
	}
}

// TestOneTooManyIsFound needs the seeds: a window may contain too few calls.
func TestOneTooManyIsFound(t *testing.T) {
	for name, shape := range shapes {
		worst := 0
		for seed := range uint64(20) {
			worst = max(worst, record(&model{shape: shape, surplus: 1}, seed).Excess(shape))
		}
		if worst < 1 {
			t.Errorf("%s: one token above the promise was not found", name)
		}
	}
}

func TestOneLostIsFound(t *testing.T) {
	for name, shape := range shapes {
		worst := 0
		for seed := range uint64(20) {
			worst = max(worst, record(&model{shape: shape, shortfall: 1}, seed).Lost(shape))
		}
		if worst < 1 {
			t.Errorf("%s: a lost token was not found", name)
		}
	}
}

func at(ms int, outcome judge.Outcome, charges ...judge.Charge) judge.Take {
	called := start.Add(time.Duration(ms) * time.Millisecond)
	return judge.Take{Charges: charges, Called: called, Done: called.Add(time.Millisecond), Outcome: outcome}
}

func TestDoubtFavorsTheLimiter(t *testing.T) {
	h := new(judge.History)
	for range 20 {
		take := at(0, judge.Admitted, judge.Charge{Key: "k", Limit: limit})
		take.Done = take.Called.Add(2 * time.Second)
		h.Add(take)
	}
	if got := h.Excess(judge.Bucket); got != 0 {
		t.Errorf("20 takes within 2 s: %d above, want 0", got)
	}
}

func TestTwoLimits(t *testing.T) {
	user := judge.Charge{Key: "user", Limit: judge.Limit{Capacity: 1, Period: time.Hour}}
	team := judge.Charge{Key: "team", Limit: judge.Limit{Capacity: 2, Period: time.Hour}}
	h := new(judge.History)
	h.Add(at(0, judge.Admitted, user, team))
	h.Add(at(10, judge.Denied, user, team)) // by the user's limit
	if got := h.Lost(judge.Bucket); got != 0 {
		t.Errorf("a denial by one of two limits: %d lost, want 0", got)
	}
	h.Add(at(20, judge.Denied, team)) // paid for the denial
	if got := h.Lost(judge.Bucket); got != 1 {
		t.Errorf("the team's token went to a denied take: %d lost, want 1", got)
	}
}

func TestFailedTakesMayHaveSpent(t *testing.T) {
	k := judge.Charge{Key: "k", Limit: limit}
	h := new(judge.History)
	for range 100 {
		h.Add(at(0, judge.Failed, k))
	}
	h.Add(at(500, judge.Denied, k))
	if got := h.Lost(judge.FirstHit); got != 0 {
		t.Errorf("100 failed takes may have spent 10 tokens: %d lost, want 0", got)
	}
	h.Add(at(1100, judge.Denied, k))
	if got := h.Lost(judge.FirstHit); got != 1 {
		t.Errorf("100 failed takes in an earlier window: %d lost, want 1", got)
	}
}

func TestChangedLimit(t *testing.T) {
	long := judge.Limit{Capacity: 10, Period: time.Minute}
	h := new(judge.History)
	for range 10 {
		h.Add(at(0, judge.Admitted, judge.Charge{Key: "k", Limit: long}))
	}
	h.Changed("k", start.Add(100*time.Millisecond))
	h.Add(at(150, judge.Denied, judge.Charge{Key: "k", Limit: limit}))
	if got := h.Lost(judge.Bucket); got != 0 {
		t.Errorf("50 ms after a change: %d lost, want 0", got)
	}
	h.Changed("k", start.Add(3*time.Second)) // what comes later must not matter
	for ms := 1200; ms < 2200; ms += 50 {
		h.Add(at(ms, judge.Denied, judge.Charge{Key: "k", Limit: limit}))
	}
	if got := h.Lost(judge.Bucket); got < 15 {
		t.Errorf("locked out for 2 s after the change: %d lost, want 15 at least", got)
	}
}

func TestCounters(t *testing.T) {
	k := judge.Charge{Key: "k", Limit: limit}
	h := new(judge.History)
	for range 10 {
		h.Add(at(0, judge.Admitted, k))
	}
	h.Add(at(1500, judge.Denied, k))
	for shape, want := range map[judge.Shape]int{judge.Bucket: 1, judge.Capped: 1, judge.FirstHit: 1, judge.Counter: 0, judge.RequestCounter: 0} {
		if got := h.Lost(shape); got != want {
			t.Errorf("shape %d, 1.5 periods after a full window: %d lost, want %d", shape, got, want)
		}
	}
	for ms := 1500; ms < 4000; ms += 40 {
		h.Add(at(ms, judge.Denied, k))
	}
	if got := h.Lost(judge.Counter); got < 5 {
		t.Errorf("a counter that goes on denying: %d lost, want 5 at least", got)
	}
	if got := h.Lost(judge.RequestCounter); got != 0 {
		t.Errorf("a counter of all requests: %d lost, want 0", got)
	}
}
