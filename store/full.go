// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// OnFull selects the treatment of a charge to a new key in a full store. Only stores with a bound on their keys use it.
type OnFull uint8

const (
	OnFullShare  OnFull = iota // use one bucket for all such keys of the limit
	OnFullOpen                 // admit the cost as a full bucket does, and record nothing
	OnFullClosed               // deny the take
)

// ReasonFull is the reason of a denial by [OnFullClosed].
const ReasonFull = "store_full"

// FullRetry is the RetryAfter of a denial by [OnFullClosed]. It is an estimate: the store cannot know which bucket will be full
// next.
const FullRetry = time.Second
