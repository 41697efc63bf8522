// SPDX-License-Identifier: Apache-2.0

package playground

import "encoding/json"

// Bounds of what is played. More is refused, with a [Mistake].
const (
	// MaxLanes bounds the limits that are played side by side.
	MaxLanes = 4

	// MaxPhases bounds the pieces that traffic is put together from.
	MaxPhases = 6

	// MaxRequests bounds the requests of one lane, those that come back included.
	MaxRequests = 20_000

	// MaxSeconds bounds the virtual time of all phases together: a day.
	MaxSeconds = 24 * 60 * 60

	// MaxHand bounds the requests that are sent by hand.
	MaxHand = 200

	// MaxNameBytes bounds the name of a lane.
	MaxNameBytes = 40

	// MaxSeed is the largest seed: the largest integer that JavaScript holds.
	MaxSeed = 1<<53 - 1

	// Levels is how many points of a bucket's level are shown, from the first instant
	// to the last. Where tokens come all at once, two more show that.
	Levels = 600
)

// An Input is what to play: lanes side by side, all with the same traffic.
type Input struct {
	Lanes   []Lane  `json:"lanes"`
	Traffic Traffic `json:"traffic"`

	// Export asks for the trace of each lane as well.
	Export bool `json:"export,omitempty"`
}

// A Lane is one limit. Its fields say in the same words for all algorithms what
// policy files say in the words of each; those that an algorithm does not have must be
// left out.
type Lane struct {
	Name      string `json:"name,omitempty"` // for people, and for the rule
	Algorithm string `json:"algorithm"`      // as in a policy file

	// Tokens come every Per: the rate, or what a window has.
	Tokens json.Number `json:"tokens"`
	Per    string      `json:"per"`

	Capacity json.Number `json:"capacity,omitempty"` // the most the bucket holds; a token bucket needs it
	Refill   string      `json:"refill,omitempty"`   // of a token bucket: continuous or interval
	Anchor   string      `json:"anchor,omitempty"`   // of intervals and fixed windows: epoch, key or first
	Queue    json.Number `json:"queue,omitempty"`    // of a leaky bucket, which needs it
	Cost     json.Number `json:"cost,omitempty"`     // of each request that brings none; 1

	// Jitter is by how much the rule spreads those that it denies, as in "50%"; "0" is
	// not at all. It shows only where denied requests come back.
	Jitter string `json:"jitter,omitempty"`
}

// Traffic is phases, one after the other, and what is sent by hand.
type Traffic struct {
	Phases []Phase `json:"phases"`

	// Hand are the instants, in seconds from the beginning, of single requests.
	Hand []json.Number `json:"hand,omitempty"`

	// Retry makes each denied request come back when its Retry-After is over, in whole
	// seconds as HTTP has them.
	Retry bool `json:"retry,omitempty"`
}

// A Phase is one piece of traffic. Which fields it has goes by its shape.
type Phase struct {
	// Shape is steady, burst, poisson, pause or trace.
	Shape string `json:"shape"`

	// Seconds is how long it lasts; a trace lasts as long as it does.
	Seconds json.Number `json:"seconds,omitempty"`

	Rate  json.Number `json:"rate,omitempty"`  // requests a second: steady, and on average poisson
	Count int         `json:"count,omitempty"` // of a burst, all at one instant
	Every string      `json:"every,omitempty"` // from one burst to the next; empty: there is one
	Seed  int64       `json:"seed,omitempty"`  // of poisson; 0 is a seed like any other
	Trace string      `json:"trace,omitempty"` // lines of an access log, or JSON lines
}
