// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of a [Penalty].
const (
	MinPenalty = time.Millisecond
	MaxPenalty = 366 * 24 * time.Hour

	// MaxPenaltyFactor bounds the growth of a penalty.
	MaxPenaltyFactor = 100 * Token

	// maxPenaltyLevel is the highest level that a snapshot shows.
	maxPenaltyLevel = 1<<levelBits - 1

	// levelBits and the bits of the longest penalty in microseconds share one word of a snapshot.
	levelBits = 18
)

// ErrPenalty is wrapped by the errors of [NewPenalty].
var ErrPenalty = errors.New("bucket: invalid penalty")

// A Penalty lengthens denials. If a limit denies a cost, its key is under a penalty. Until the penalty ends, the limit
// denies every take of the key, also one that its bucket could pay. Denials during a penalty do not extend it.
//
// The first penalty of a key has the length First. Each further one is longer by the factor, up to Most. After a penalty
// has ended, and no other one has started for the time Most, the key starts over with First.
//
// A Penalty is immutable and safe for concurrent use. The nil Penalty is no penalty.
type Penalty struct {
	first, most int64 // microseconds
	factor      int64 // thousandths
}

// NewPenalty returns a penalty that grows from first to most. The factor is in thousandths, as [Tokens] are: 2*Token
// doubles. A penalty with equal lengths, or the factor Token, is fixed. The lengths must be whole microseconds from
// [MinPenalty] to [MaxPenalty], and the factor from Token to [MaxPenaltyFactor].
func NewPenalty(first, most time.Duration, factor Tokens) (*Penalty, error) {
	switch {
	case first < MinPenalty || most > MaxPenalty:
		return nil, fmt.Errorf("%w: from %v to %v: must be between %v and %v", ErrPenalty, first, most, MinPenalty, MaxPenalty)
	case first > most:
		return nil, fmt.Errorf("%w: first %v is longer than most %v", ErrPenalty, first, most)
	case first%time.Microsecond != 0 || most%time.Microsecond != 0:
		return nil, fmt.Errorf("%w: from %v to %v: must be whole microseconds", ErrPenalty, first, most)
	case factor < Token || factor > MaxPenaltyFactor:
		return nil, fmt.Errorf("%w: factor %v: must be between 1 and %v", ErrPenalty, factor, MaxPenaltyFactor)
	case factor == Token:
		most = first // it never grows
	}
	if first == most {
		factor = Token
	}
	return &Penalty{first.Microseconds(), most.Microseconds(), int64(factor)}, nil
}

// First returns the length of the first penalty.
func (p *Penalty) First() time.Duration { return time.Duration(p.first) * time.Microsecond }

// Most returns the length of the longest penalty. It is also the quiet time after which the lengths start over.
func (p *Penalty) Most() time.Duration { return time.Duration(p.most) * time.Microsecond }

// Factor returns the growth per penalty, in thousandths. It is Token for a fixed penalty.
func (p *Penalty) Factor() Tokens { return Tokens(p.factor) }

// Equal reports whether p and q have the same effect. Both may be nil.
func (p *Penalty) Equal(q *Penalty) bool {
	return p == q || p != nil && q != nil && *p == *q
}

// A PenaltyState is the penalty of one key. The zero state is no penalty, so a missing row needs no special case. A
// store keeps it beside the [Row] of the key. A new policy may have another [Penalty] for the key: a running penalty
// keeps its end, and the next one grows from its length.
type PenaltyState struct {
	Until   Instant // the end of the penalty
	Length  int64   // of the penalty, in microseconds
	Level   int64   // the number of penalties since the key last started over
	Expires Instant // the state is zero from then on: the end, for a growing penalty plus its longest length
}

// At returns the state at now: s, or the zero state if it has expired.
func (s PenaltyState) At(now Instant) PenaltyState {
	if now >= s.Expires {
		return PenaltyState{}
	}
	return s
}

// Start returns the state after a denial at now that starts a penalty.
func (p *Penalty) Start(s PenaltyState, now Instant) PenaltyState {
	s = s.At(now)
	length := min(max(p.grow(s.Length), p.first), p.most)
	next := PenaltyState{Until: now + Instant(length), Length: length, Level: s.Level + 1}
	if next.Expires = next.Until; p.first < p.most {
		next.Expires += Instant(p.most)
	}
	return next
}

// grow returns length times the factor, rounded down. Every product stays below 2^53: see [MaxPenaltyFactor].
func (p *Penalty) grow(length int64) int64 {
	thousand := int64(Token)
	return length/thousand*p.factor + length%thousand*p.factor/thousand
}

// Apply applies a penalty to the snapshot of its limit's own decision at now. A running penalty denies, and RetryAfter is
// at least its rest. If starts is set, a denial of the limit itself starts a penalty, unless the cost is 0 or can never fit.
// Apply then returns the new state and true, and the snapshot shows it.
//
// Pass starts for a take that is not a dry run, and has no MaxWait. A reservation that would wait too long does not
// start a penalty. A forced charge has no penalty at all: do not call Apply for it.
func (p *Penalty) Apply(snap *Snapshot, s PenaltyState, now Instant, starts bool) (PenaltyState, bool) {
	s = s.At(now)
	started := false
	if now >= s.Until && starts && !snap.Allowed && snap.Cost > 0 && snap.RetryAfter != Never {
		s, started = p.Start(s, now), true
	}
	if now < s.Until {
		snap.Penalize(int64(s.Until-now), s.Level)
	}
	return s, started
}

// Penalize makes s the snapshot of a key under a penalty that ends after left microseconds. Stores call it if they
// decide elsewhere than in [Penalty.Apply].
func (s *Snapshot) Penalize(left, level int64) {
	if left <= 0 {
		return
	}
	s.penalty = left<<levelBits | min(level, maxPenaltyLevel)
	if s.Allowed || s.retryAfter() < left {
		s.Allowed = false
		s.RetryAfter, s.beyond = capWait(left)
	}
}

// Penalty returns the rest of the penalty of the key and its level, from 1. Both are 0 without a penalty. Level n is the
// n'th penalty since the key last started over.
func (s *Snapshot) Penalty() (left time.Duration, level int64) {
	return time.Duration(s.penaltyLeft()) * time.Microsecond, s.penalty & maxPenaltyLevel
}

func (s *Snapshot) penaltyLeft() int64 { return s.penalty >> levelBits }

// penaltyAfter changes the penalty of s to the one after us microseconds.
func (s *Snapshot) penaltyAfter(us int64) {
	if s.penaltyLeft() <= us {
		s.penalty = 0
		return
	}
	s.penalty -= us << levelBits
}
