// SPDX-License-Identifier: Apache-2.0

// Package inredis gives mete and its rivals with buckets in Redis one interface. Each is configured as its
// documentation recommends, and does no work that its users would not need.
package inredis

import (
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// A Subject makes limiters of one kind.
type Subject struct {
	Name string
	Kind Kind

	// New connects to the Redis server at addr, a host:port.
	New func(addr string, q subject.Quota) (remote.Limiter, error)
}

// A Kind selects the scenarios of a subject.
type Kind int

const (
	Exact  Kind = iota // every take is a call of Redis
	Leased             // leases tokens of one bucket; for one hot key only
	Floor              // decides nothing and allows everything: the cost of the round trip
)

// The names of the subjects with targets.
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
