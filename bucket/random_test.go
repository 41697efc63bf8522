// SPDX-License-Identifier: Apache-2.0

package bucket_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
)

// seed makes the random runs repeatable. A failure prints all its inputs.
const seed = 20260101

func random(stream uint64) *rand.Rand { return rand.New(testseed.PCG(seed, stream)) }

// upTo returns a random number from 0 to most, with small and large ones equally likely.
func upTo(r *rand.Rand, most int64) int64 {
	return r.Int64N(1 + max(most, 0)>>r.IntN(63))
}

// randomLimit returns a valid limit of any size.
func randomLimit(r *rand.Rand) bucket.Limit {
	periods := []time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}
	for {
		s := bucket.Spec{
			Capacity: bucket.Tokens(upTo(r, 1<<40)),
			Rate: bucket.Rate{
				Tokens: bucket.Tokens(1 + upTo(r, 1<<40)),
				Per:    time.Duration(1+r.IntN(12)) * periods[r.IntN(len(periods))],
			},
		}
		if r.IntN(2) == 0 {
			s.Capacity -= s.Capacity % bucket.Token
		}
		if r.IntN(2) == 0 {
			most := bucket.Tokens(upTo(r, 3*int64(s.Capacity)+5))
			s.MaxReserved = &most
		}
		if l, _, err := s.Compile(); err == nil {
			return l
		}
	}
}

// randomCost returns a cost that l may or may not hold.
func randomCost(r *rand.Rand, l bucket.Limit) int64 {
	c := int64(l.Capacity())
	switch r.IntN(12) {
	case 0:
		return c
	case 1:
		return c + 1
	case 2:
		return -1 - upTo(r, 1<<62)
	case 3:
		return upTo(r, int64(bucket.MaxTokens))
	case 4:
		return min(c+int64(l.MaxReserved()), int64(bucket.MaxTokens)) + r.Int64N(3) - 1
	}
	return upTo(r, c)
}

// randomStep moves now, mostly forward by a step that suits the limit, sometimes back or far.
func randomStep(r *rand.Rand, l bucket.Limit, now int64) int64 {
	full := l.TimeFor(l.Capacity() + 1).Microseconds()
	switch r.IntN(16) {
	case 0:
		return upTo(r, now) // back, at most to the epoch
	case 1:
		return -upTo(r, 1<<50) // before the epoch
	case 2:
		return now + upTo(r, 1<<53) // up to 285 years on
	case 3, 4, 5:
		return now
	}
	return now + upTo(r, full)
}

// mostMicros is the longest time.Duration in microseconds.
const mostMicros = math.MaxInt64 / 1000

// randomWait returns a wait in microseconds that fits in a time.Duration.
func randomWait(r *rand.Rand, l bucket.Limit) int64 {
	switch r.IntN(6) {
	case 0:
		return min(upTo(r, 1<<54), mostMicros)
	case 1:
		return -1
	case 2, 3:
		return upTo(r, min(2*l.TimeFor(l.Capacity()+1).Microseconds(), mostMicros))
	}
	return 0
}

// randomRun plays steps on a pair and sometimes changes the limit.
func randomRun(t *testing.T, r *rand.Rand, steps int) {
	var p pair
	l, now := randomLimit(r), upTo(r, 1<<52)
	for range steps {
		now = randomStep(r, l, now)
		switch r.IntN(10) {
		case 0:
			p.refund(t, l, now, randomCost(r, l))
		case 1:
			p.ask(t, l, now, randomCost(r, l), randomWait(r, l), false)
		case 2:
			if r.IntN(4) == 0 {
				l = randomLimit(r)
			}
		case 3:
			l = resized(t, r, l)
		default:
			p.ask(t, l, now, randomCost(r, l), randomWait(r, l), true)
		}
		if now > 1<<52 { // stay where 2^53 is not near, but return to it often
			p, now = pair{}, upTo(r, 1<<40)
		}
	}
}

// resized returns l with another capacity and, at random, the same rate.
func resized(t *testing.T, r *rand.Rand, l bucket.Limit) bucket.Limit {
	t.Helper()
	n, p := l.Refill()
	s := bucket.Spec{
		Capacity: bucket.Tokens(upTo(r, 2*int64(l.Capacity())+1)),
		Rate:     bucket.Rate{Tokens: n, Per: time.Duration(p) * time.Microsecond},
	}
	if r.IntN(2) == 0 {
		s.MaxReserved = new(bucket.Tokens)
	}
	changed, _, err := s.Compile()
	if err != nil {
		return l
	}
	return changed
}

func TestLimit_AgreesWithTheOracle(t *testing.T) {
	r := random(1)
	for range 2000 {
		randomRun(t, r, 40)
	}
}
