// SPDX-License-Identifier: Apache-2.0

// Package subject gives mete and its rivals one interface. Each is configured as its documentation
// recommends, and does no work that its users would not need.
package subject

import "time"

// A Limiter as [For] returns it is safe for concurrent use.
type Limiter interface {
	// Take takes one token of the key's bucket. An error counts as a denial; none is expected.
	Take(key string) bool

	// Close ends background work and frees the keys.
	Close()
}

// For returns l for one goroutine. A limiter that reuses its request has one request per goroutine.
func For(l Limiter) Limiter {
	if f, ok := l.(interface{ ForGoroutine() Limiter }); ok {
		return f.ForGoroutine()
	}
	return l
}

// A Quota is the limit of every key.
type Quota struct {
	Capacity int           // tokens at once, or in one window
	Every    time.Duration // the time to refill one token
}

// window is the window of limiters that count in windows. None ends within a run, unlike shorter ones, which
// start with the process or with the first call of a key.
const window = 24 * time.Hour

var (
	// Allow admits every call of a run. Each bucket stays less than full for at least ten seconds after a
	// call, so that no limiter may evict it.
	Allow = Quota{Capacity: 500_000_000, Every: 10 * time.Second}

	// Deny admits only the first call of a key.
	Deny = Quota{Capacity: 1, Every: time.Hour}
)

// A Subject makes limiters of one kind.
type Subject struct {
	Name string

	// New returns an empty limiter without a hint about the number of keys.
	New func(Quota) (Limiter, error)
}

// The names of the subjects with targets.
const (
	Mete      = "mete: keyed.Allow"
	MeteTake  = "mete: Limiter.Take"
	MeteThree = "mete: Limiter.Take, three rules"
	Sethvargo = "sethvargo/go-limiter"
	Throttled = "throttled"
	Httprate  = "httprate counter"
	XTimeMap  = "x/time/rate, map + mutex"
)

// All are the subjects, mete first.
var All = []Subject{
	{Mete, newKeyed},
	{MeteTake, newPolicy(`"header:x-user"`)},
	{"mete: Limiter.Take, hashed header", newPolicy(`"header:x-api-key"`)},
	{MeteThree, newPolicy(`"header:x-user"`, `"header:x-user", "path"`, `"header:x-team"`)},
	{Sethvargo, newSethvargo},
	{Throttled, newThrottled},
	{Httprate, newHttprate},
	{XTimeMap, newXTimeMap},
	{"x/time/rate, sync.Map", newXTimeSyncMap},
	{"ulule/limiter", newUlule},
}
