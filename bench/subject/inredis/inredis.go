// SPDX-License-Identifier: Apache-2.0

// Package inredis puts mete and its rivals, with their buckets in Redis, behind
// one function, each set up as its documentation means it to be used and without
// work in the call that its user would not have to do.
package inredis

import "github.com/metehq/mete/bench/subject"

// A Take asks the bucket of every key for one token and reports whether all of
// them gave it. Keys are distinct and in ascending order. It keeps what it needs
// from call to call: only one goroutine at a time may use it.
type Take func(keys []string) (allowed bool, err error)

// A Limiter is one of the limiters compared. It is safe for concurrent use.
type Limiter struct {
	// Caller returns what one more goroutine takes by.
	Caller func() Take

	// Close ends background work and closes the limiter's connections.
	Close func()
}

// A Subject makes limiters of one kind.
type Subject struct {
	Name string
	Kind Kind

	// New connects to the Redis server at addr, which is host:port.
	New func(addr string, q subject.Quota) (Limiter, error)
}

// Kind says where a subject has a place.
type Kind int

const (
	Exact  Kind = iota // asks Redis at every take
	Leased             // takes tokens from one bucket in advance: of one hot key only
	Floor              // decides nothing, and allows everything: what the way to Redis costs
)

// The names of the subjects that the targets speak of.
const (
	MeteStore         = "mete redisstore"
	MeteLimiter       = "mete Limiter"
	MeteStoreLeased   = "mete redisstore, leased"
	MeteLimiterLeased = "mete Limiter, leased"
	RedisRate         = "redis_rate"
	Window            = "fixed window as rueidislimiter's"
)

// All are the subjects, mete first.
var All = []Subject{
	{MeteStore, Exact, newMeteStore(false)},
	{MeteLimiter, Exact, newMeteLimiter(false)},
	{MeteStoreLeased, Leased, newMeteStore(true)},
	{MeteLimiterLeased, Leased, newMeteLimiter(true)},
	{RedisRate, Exact, newRedisRate},
	{"throttled", Exact, newThrottled},
	{"ulule/limiter", Exact, newUlule},
	{Window, Exact, newWindow},
	{"script a take, rueidis", Exact, newScript},
	{"floor: GET, rueidis", Floor, newGet},
}

// one makes a Take of a limiter that knows one key a call: of several keys it
// asks one after another, until one denies. That is not one step: what the keys
// before gave is lost.
func one(take func(key string) (bool, error)) func() Take {
	return func() Take {
		return func(keys []string) (bool, error) {
			for _, key := range keys {
				if allowed, err := take(key); err != nil || !allowed {
					return false, err
				}
			}
			return true, nil
		}
	}
}
