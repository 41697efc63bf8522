// SPDX-License-Identifier: Apache-2.0

// Package subject puts mete and its rivals behind one method, each set up as
// its documentation means it to be used and without work in the call that its
// user would not have to do.
package subject

import "time"

// A Limiter is one of the limiters compared. It is safe for concurrent use as [For] returns it.
type Limiter interface {
	// Take asks for one token of the key's bucket. An error counts as a denial:
	// none is expected.
	Take(key string) bool

	// Close ends background work and frees the keys.
	Close()
}

// For returns l for the use of one goroutine. A limiter that keeps its request in memory
// has one request for each goroutine.
func For(l Limiter) Limiter {
	if f, ok := l.(interface{ ForGoroutine() Limiter }); ok {
		return f.ForGoroutine()
	}
	return l
}

// A Quota is the limit that every key of a limiter gets.
type Quota struct {
	Capacity int           // tokens a key may spend at once, or in one window
	Every    time.Duration // a bucket refills one token this often
}

// window is the window of the limiters that count in windows instead of
// refilling. None ends within a run, unlike one shorter: they align it to their
// start or to the key's first call.
const window = 24 * time.Hour

var (
	// Allow admits every call of a run and still leaves each bucket that was
	// touched less than full for ten seconds: nobody may forget it meanwhile.
	Allow = Quota{Capacity: 500_000_000, Every: 10 * time.Second}

	// Deny admits the first call of a key and no other within the run.
	Deny = Quota{Capacity: 1, Every: time.Hour}
)

// A Subject makes limiters of one kind.
type Subject struct {
	Name string

	// New returns an empty limiter. None is told how many keys to expect.
	New func(Quota) (Limiter, error)
}

// The names of the subjects that the targets speak of.
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
