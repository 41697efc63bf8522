// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"testing"

	"github.com/metehq/mete/bench/exactness/clock"
	"github.com/metehq/mete/bench/exactness/judge"
	"github.com/metehq/mete/bench/exactness/wire"
)

// A Place is where a contender keeps its buckets.
type Place string

// The places.
const (
	Memory   Place = "memory"
	Redis    Place = "Redis"
	Postgres Place = "PostgreSQL"
)

// A Contender is a rate limiter with its promise.
type Contender struct {
	Name    string
	Place   Place
	Setting string // that distinguishes it from a contender with the same name and place, or ""

	Shape judge.Shape
	Says  string // the promise in the words of the documentation, abridged
	Link  string // to the documentation

	// Start runs one process of the contender with a clock.
	Start func(t testing.TB, c *clock.Clock, s wire.Setup) (Node, error)

	// Cannot has the reasons for conditions that the contender does not take part in.
	Cannot map[string]string

	// Flood is the number of new keys that fill a contender in memory.
	Flood int
}

// A Node is one process of a contender.
type Node interface {
	wire.Limiter
	ContenderVersion() string
	Close()
}

// Title names the contender in tables.
func (c Contender) Title() string {
	title := c.Name + ", " + string(c.Place)
	if c.Setting != "" {
		title += ", " + c.Setting
	}
	return title
}

// Reason returns why the contender does not take part in a condition, or "".
func (c Contender) Reason(condition string) string {
	if reason := c.Cannot[condition]; reason != "" {
		return reason
	}
	switch condition {
	case Skew, Failover, Killed:
		if c.Place == Memory {
			return noStore
		}
		if c.Place == Postgres && condition == Failover {
			return noStandby
		}
	case Eviction:
		if c.Place == Postgres {
			return noEviction
		}
	}
	return ""
}

// Reasons of several contenders.
const (
	noStore     = "It has no shared store."
	noStandby   = "The comparison starts no standby of PostgreSQL."
	noEviction  = "It evicts no keys."
	unbounded   = "It keeps keys until they expire, without a bound on memory."
	lostStore   = "It did not reach the store again within a minute."
	fixedLimit  = "A running limiter's limit cannot change; a new one starts with full buckets."
	fixedWindow = "A running limiter's window cannot change; a new one starts with empty counts."
)

// Contenders are all contenders, mete first.
var Contenders = []Contender{
	{Name: "mete", Place: Memory, Shape: judge.Bucket, Says: "burst + rate · t in any window", Link: meteDoc, Start: goWorker("mete"), Flood: 5000},
	{Name: "mete", Place: Redis, Shape: judge.Bucket, Says: "burst + rate · t in any window; one capacity more after a failover that lost writes", Link: meteRedisDoc, Start: goWorker("mete")},
	{Name: "mete", Place: Postgres, Shape: judge.Bucket, Says: "burst + rate · t in any window; one capacity more after a crash of PostgreSQL", Link: metePostgresDoc, Start: goWorker("mete")},
	{Name: "mete", Place: Postgres, Setting: "durable", Shape: judge.Bucket, Says: "burst + rate · t in any window", Link: metePostgresDoc, Start: goWorker("mete, durable")},

	{Name: "x/time/rate", Place: Memory, Shape: judge.Bucket, Says: "Over any large enough time interval, the Limiter limits the rate to r tokens per second, with a maximum burst size of b events",
		Link: "https://pkg.go.dev/golang.org/x/time/rate#Limiter", Start: goWorker("x/time/rate"), Cannot: map[string]string{Eviction: "It has no keys."}},
	{Name: "juju/ratelimit", Place: Memory, Shape: judge.Bucket, Says: "a token bucket that fills at the rate of one token every fillInterval, up to the given maximum capacity",
		Link: "https://pkg.go.dev/github.com/juju/ratelimit#NewBucket", Start: goWorker("juju/ratelimit"), Cannot: map[string]string{Eviction: "It has no keys.", Change: fixedLimit}},
	{Name: "tollbooth", Place: Memory, Shape: judge.Bucket, Says: "max requests per second with a burst, by a token bucket",
		Link: "https://github.com/didip/tollbooth/blob/v8.0.1/README.md#L181", Start: goWorker("tollbooth"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "sethvargo/go-limiter", Place: Memory, Shape: judge.FirstHit, Says: "tokens allowed per interval, which starts with the first take",
		Link: "https://pkg.go.dev/github.com/sethvargo/go-limiter/memorystore#Config", Start: goWorker("sethvargo/go-limiter"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "httprate", Place: Memory, Shape: judge.Counter, Says: "a request limit per window length, by a sliding window counter",
		Link: "https://github.com/go-chi/httprate/blob/v0.16.1/README.md#L10", Start: goWorker("httprate"), Cannot: map[string]string{Eviction: unbounded, Change: fixedWindow}},
	{Name: "throttled", Place: Memory, Shape: judge.Bucket, Says: "GCRA: MaxRate with MaxBurst requests that are allowed to exceed the rate",
		Link: "https://pkg.go.dev/github.com/throttled/throttled/v2#RateQuota", Start: goWorker("throttled"), Flood: 5000},
	{Name: "throttled", Place: Redis, Shape: judge.Bucket, Says: "the same", Link: "https://pkg.go.dev/github.com/throttled/throttled/v2#RateQuota", Start: goWorker("throttled")},
	{Name: "ulule/limiter", Place: Memory, Shape: judge.FirstHit, Says: "a limit per period, in fixed windows",
		Link: "https://github.com/ulule/limiter/blob/v3.11.2/README.md#L27", Start: goWorker("ulule/limiter"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "ulule/limiter", Place: Redis, Shape: judge.FirstHit, Says: "the same", Link: "https://github.com/ulule/limiter/blob/v3.11.2/README.md#L27", Start: goWorker("ulule/limiter")},
	{Name: "redis_rate", Place: Redis, Shape: judge.Bucket, Says: "GCRA (leaky bucket): Rate per Period with a Burst",
		Link: "https://pkg.go.dev/github.com/go-redis/redis_rate/v10#Limit", Start: goWorker("redis_rate")},
	{Name: "mennanov/limiters", Place: Redis, Shape: judge.Bucket, Says: "Precise (no over or under-limiting), but requires a lock (provided)",
		Link: "https://github.com/mennanov/limiters/blob/v1.11.0/README.md#L20", Start: mennanovWorker},
	{Name: "envoyproxy/ratelimit", Place: Redis, Shape: judge.Epoch, Says: "requests_per_unit in each unit of time",
		Link: "https://github.com/envoyproxy/ratelimit/blob/3fb702589d36/README.md#L289", Start: startEnvoy},

	{Name: "rate-limiter-flexible", Place: Memory, Shape: judge.FirstHit, Says: "points per duration, in fixed windows that start with the first request",
		Link: flexibleDoc, Start: nodeWorker("rate-limiter-flexible"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "rate-limiter-flexible", Place: Redis, Shape: judge.FirstHit, Says: "the same", Link: flexibleDoc, Start: nodeWorker("rate-limiter-flexible")},
	{Name: "rate-limiter-flexible", Place: Postgres, Shape: judge.FirstHit, Says: "the same", Link: flexibleDoc, Start: nodeWorker("rate-limiter-flexible")},
	{Name: "express-rate-limit", Place: Memory, Shape: judge.FirstHit, Says: "at most limit connections during the windowMs window",
		Link: expressDoc, Start: nodeWorker("express-rate-limit"), Cannot: map[string]string{Eviction: unbounded, Change: fixedWindow}},
	{Name: "express-rate-limit", Place: Redis, Shape: judge.FirstHit, Says: "the same, with rate-limit-redis", Link: expressDoc, Start: nodeWorker("express-rate-limit")},
	{Name: "limiter (npm)", Place: Memory, Shape: judge.Capped, Says: "A maximum token count per interval, with continuous refill underneath",
		Link: "https://www.npmjs.com/package/limiter", Start: nodeWorker("limiter"), Cannot: map[string]string{Eviction: "It has no keys."}},

	{Name: "nginx limit_req", Place: Memory, Shape: judge.Bucket, Says: "a leaky bucket: an average rate with excessive requests up to the burst size",
		Link: "https://nginx.org/en/docs/http/ngx_http_limit_req_module.html", Start: startNginx, Flood: 5000},
	{Name: "HAProxy", Place: Memory, Shape: judge.RequestCounter, Says: "http_req_rate(period): the average request rate over that period",
		Link: "https://docs.haproxy.org/2.6/configuration.html#stick-table", Start: startHAProxy, Flood: 5000,
		Cannot: map[string]string{Change: "Not run: whether a reload keeps a table depends on its peers section."}},
	{Name: "Caddy, caddy-ratelimit", Place: Memory, Shape: judge.Log, Says: "max_events in any window before the request: a sliding window",
		Link: "https://github.com/mholt/caddy-ratelimit/blob/v0.1.0/README.md#L54", Start: startCaddy, Cannot: map[string]string{Eviction: unbounded}},
}

const (
	meteDoc         = "algorithm.md"
	meteRedisDoc    = "redis.md#redis-configuration"
	metePostgresDoc = "postgres.md#durability"
	flexibleDoc     = "https://github.com/animir/node-rate-limiter-flexible/wiki/Fixed-Window-rate-limiting-algorithm-explained"
	expressDoc      = "https://express-rate-limit.mintlify.app/reference/configuration"
)
