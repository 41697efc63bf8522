// SPDX-License-Identifier: Apache-2.0

package playground

// Bounds of what is played. More is a mistake.
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
