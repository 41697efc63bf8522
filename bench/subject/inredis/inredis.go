// SPDX-License-Identifier: Apache-2.0

// Package inredis puts mete and its rivals, with their buckets in Redis, behind
// one function, each set up as its documentation means it to be used and without
// work in the call that its user would not have to do.
package inredis

import (
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// A Subject makes limiters of one kind.
type Subject struct {
	Name string
	Kind Kind

	// New connects to the Redis server at addr, which is host:port.
	New func(addr string, q subject.Quota) (remote.Limiter, error)
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
