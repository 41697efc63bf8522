// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"fmt"
	"slices"
	"strings"
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
	Uses  string // links to the documented calls and settings that the comparison uses

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
	{Name: "mete", Place: Memory, Shape: judge.Bucket, Says: "burst + rate · t in any window", Link: meteDoc,
		Uses: meteUse, Start: goWorker("mete"), Flood: 5000},
	{Name: "mete", Place: Redis, Shape: judge.Bucket, Says: "burst + rate · t in any window; one capacity more after a failover that lost writes", Link: meteRedisDoc,
		Uses: meteUse, Start: goWorker("mete")},
	{Name: "mete", Place: Postgres, Shape: judge.Bucket, Says: "burst + rate · t in any window; one capacity more after a crash of PostgreSQL", Link: metePostgresDoc,
		Uses: meteUse, Start: goWorker("mete")},
	{Name: "mete", Place: Postgres, Setting: "durable", Shape: judge.Bucket, Says: "burst + rate · t in any window", Link: metePostgresDoc,
		Uses: meteUse, Start: goWorker("mete, durable")},

	{Name: "x/time/rate", Place: Memory, Shape: judge.Bucket, Says: "in any large enough time interval, the Limiter limits the rate to r tokens per second, with a maximum burst size of b events",
		Link: xTimeDoc + "#L35", Uses: uses("Allow", xTimeDoc+"#L109"),
		Start: goWorker("x/time/rate"), Cannot: map[string]string{Eviction: "It has no keys."}},
	{Name: "juju/ratelimit", Place: Memory, Shape: judge.Bucket, Says: "a token bucket that fills at the rate of one token every fillInterval, up to the given maximum capacity",
		Link: jujuDoc + "#L75", Uses: uses("TakeAvailable", jujuDoc+"#L221"),
		Start: goWorker("juju/ratelimit"), Cannot: map[string]string{Eviction: "It has no keys.", Change: fixedLimit}},
	{Name: "tollbooth", Place: Memory, Shape: judge.Bucket, Says: "max requests per second with a burst, by a token bucket",
		Link: tollboothDoc + "#L181", Uses: uses("NewLimiter", tollboothDoc+"#L79", "LimitByKeys", tollboothDoc+"#L123"),
		Start: goWorker("tollbooth"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "sethvargo/go-limiter", Place: Memory, Shape: judge.FirstHit, Says: "tokens allowed per interval, which starts with the first take",
		Link: sethvargoDoc + "memorystore/store.go#L33", Uses: uses("Take", sethvargoDoc+"README.md?plain=1#L37", "Set", sethvargoDoc+"store.go#L47"),
		Start: goWorker("sethvargo/go-limiter"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "httprate", Place: Memory, Shape: judge.Counter, Says: "a request limit per window length, by a sliding window counter",
		Link: httprateDoc + "#L10", Uses: uses("LimitBy", httprateDoc+"#L74"),
		Start: goWorker("httprate"), Cannot: map[string]string{Eviction: unbounded, Change: fixedWindow}},
	{Name: "throttled", Place: Memory, Shape: judge.Bucket, Says: "GCRA: MaxRate with MaxBurst requests that are allowed to exceed the rate",
		Link: throttledDoc + "rate.go#L86", Uses: uses("memstore", throttledDoc+"example_test.go#L46"),
		Start: goWorker("throttled"), Flood: 5000},
	{Name: "throttled", Place: Redis, Shape: judge.Bucket, Says: "the same",
		Link: throttledDoc + "rate.go#L86", Uses: uses("goredisstore", throttledDoc+"store/goredisstore.v9/goredisstore.go#L39"), Start: goWorker("throttled")},
	{Name: "ulule/limiter", Place: Memory, Shape: judge.FirstHit, Says: "the number of requests per period",
		Link: ululeDoc + "README.md?plain=1#L27", Uses: uses("memory", ululeDoc+"README.md?plain=1#L90"),
		Start: goWorker("ulule/limiter"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "ulule/limiter", Place: Redis, Shape: judge.FirstHit, Says: "the same; the first request starts the period",
		Link: ululeDoc + "drivers/store/redis/store.go#L25", Uses: uses("redis", ululeDoc+"README.md?plain=1#L71"), Start: goWorker("ulule/limiter")},
	{Name: "redis_rate", Place: Redis, Shape: judge.Bucket, Says: "GCRA (leaky bucket): Rate per Period with a Burst",
		Link: redisRateDoc + "README.md?plain=1#L9", Uses: uses("Allow", redisRateDoc+"README.md?plain=1#L52"), Start: goWorker("redis_rate")},
	{Name: "mennanov/limiters", Place: Redis, Shape: judge.Bucket, Says: "Precise (no over or under-limiting), but requires a lock (provided)",
		Link: mennanovDoc + "README.md?plain=1#L20", Uses: uses("NewTokenBucket", mennanovDoc+"README.md?plain=1#L68", "NewLockRedis", mennanovDoc+"limiters_test.go#L180"), Start: mennanovWorker},
	{Name: "envoyproxy/ratelimit", Place: Redis, Shape: judge.Epoch, Says: "requests_per_unit in each unit of time",
		Link: envoyDoc + "#L308", Uses: uses("descriptor", envoyDoc+"#L454", "start", envoyDoc+"#L167", "sentinels", envoyDoc+"#L1278"), Start: startEnvoy},

	{Name: "rate-limiter-flexible", Place: Memory, Shape: judge.FirstHit, Says: "points per duration, in fixed windows that start with the first request",
		Link: flexibleDoc + "README.md?plain=1#L35", Uses: uses("RateLimiterMemory", flexibleDoc+"README.md?plain=1#L62", "points", flexibleDoc+"types.d.ts#L86"),
		Start: nodeWorker("rate-limiter-flexible"), Cannot: map[string]string{Eviction: unbounded}},
	{Name: "rate-limiter-flexible", Place: Redis, Shape: judge.FirstHit, Says: "the same",
		Link: flexibleDoc + "README.md?plain=1#L35", Uses: uses("RateLimiterRedis", flexibleDoc+"CONTEXT.md?plain=1#L174"), Start: nodeWorker("rate-limiter-flexible")},
	{Name: "rate-limiter-flexible", Place: Postgres, Shape: judge.FirstHit, Says: "the same",
		Link: flexibleDoc + "README.md?plain=1#L35", Uses: uses("RateLimiterPostgres", flexibleDoc+"lib/RateLimiterPostgres.js#L20"), Start: nodeWorker("rate-limiter-flexible")},
	{Name: "express-rate-limit", Place: Memory, Shape: judge.FirstHit, Says: "limit requests per window of windowMs",
		Link: expressDoc + "#L29", Uses: uses("rateLimit", expressDoc+"#L27"),
		Start: nodeWorker("express-rate-limit"), Cannot: map[string]string{Eviction: unbounded, Change: fixedWindow}},
	{Name: "express-rate-limit", Place: Redis, Shape: judge.FirstHit, Says: "the same, with rate-limit-redis",
		Link: expressDoc + "#L29", Uses: uses("RedisStore", expressRedisDoc+"#L110"), Start: nodeWorker("express-rate-limit")},
	{Name: "limiter (npm)", Place: Memory, Shape: judge.Capped, Says: "A maximum token count per interval, with continuous refill underneath",
		Link: limiterDoc + "#L16", Uses: uses("tryRemoveTokens", limiterDoc+"#L58"),
		Start: nodeWorker("limiter"), Cannot: map[string]string{Eviction: "It has no keys."}},

	{Name: "nginx limit_req", Place: Memory, Shape: judge.Bucket, Says: "a leaky bucket: an average rate with excessive requests up to the burst size",
		Link: nginxDoc + "#limit_req", Uses: uses("burst and nodelay", nginxDoc+"#limit_req", "limit_req_zone", nginxDoc+"#limit_req_zone"), Start: startNginx, Flood: 5000},
	{Name: "HAProxy", Place: Memory, Shape: judge.RequestCounter, Says: "http_req_rate(period): the average request rate over that period",
		Link: haproxyDoc + "#l11849", Uses: uses("track-sc", haproxyDoc+"#l7396", "sc_http_req_rate", haproxyDoc+"#l19126"), Start: startHAProxy, Flood: 5000,
		Cannot: map[string]string{Change: "Not run: whether a reload keeps a table depends on its peers section."}},
	{Name: "Caddy, caddy-ratelimit", Place: Memory, Shape: judge.Log, Says: "max_events in any window before the request: a sliding window",
		Link: caddyDoc + "#L54", Uses: uses("rate_limit", caddyDoc+"#L143"), Start: startCaddy, Cannot: map[string]string{Eviction: unbounded}},
}

// Documents of the versions in go.mod, package-lock.json and the system's packages.
const (
	meteDoc         = "algorithm.md"
	meteRedisDoc    = "redis.md#redis-configuration"
	metePostgresDoc = "postgres.md#durability"
	meteUse         = "[mete.go](../bench/exactness/worker/mete.go)"

	xTimeDoc     = "https://github.com/golang/time/blob/v0.16.0/rate/rate.go"
	jujuDoc      = "https://github.com/juju/ratelimit/blob/v1.0.2/ratelimit.go"
	tollboothDoc = "https://github.com/didip/tollbooth/blob/v8.0.1/README.md?plain=1"
	sethvargoDoc = "https://github.com/sethvargo/go-limiter/blob/v0.7.1/"
	httprateDoc  = "https://github.com/go-chi/httprate/blob/v0.16.1/README.md?plain=1"
	throttledDoc = "https://github.com/throttled/throttled/blob/v2.15.0/"
	ululeDoc     = "https://github.com/ulule/limiter/blob/v3.11.2/"
	redisRateDoc = "https://github.com/go-redis/redis_rate/blob/v10.0.1/"
	mennanovDoc  = "https://github.com/mennanov/limiters/blob/v1.11.0/"
	envoyDoc     = "https://github.com/envoyproxy/ratelimit/blob/3fb702589d36/README.md?plain=1"
	caddyDoc     = "https://github.com/mholt/caddy-ratelimit/blob/v0.1.0/README.md?plain=1"

	flexibleDoc     = "https://github.com/animir/node-rate-limiter-flexible/blob/v11.4.0/"
	expressDoc      = "https://github.com/express-rate-limit/express-rate-limit/blob/v8.7.5/readme.md?plain=1"
	expressRedisDoc = "https://github.com/express-rate-limit/rate-limit-redis/blob/v6.0.1/readme.md?plain=1"
	limiterDoc      = "https://github.com/jhurliman/node-rate-limiter/blob/v4.1.0/README.md?plain=1"

	nginxDoc   = "https://nginx.org/en/docs/http/ngx_http_limit_req_module.html"
	haproxyDoc = "https://git.haproxy.org/?p=haproxy-2.6.git;a=blob;f=doc/configuration.txt;hb=v2.6.12"
)

// uses returns links to the documented calls and settings: pairs of a name and an address.
func uses(namesAndLinks ...string) string {
	var all []string
	for pair := range slices.Chunk(namesAndLinks, 2) {
		all = append(all, fmt.Sprintf("[%s](%s)", pair[0], pair[1]))
	}
	return strings.Join(all, ", ")
}
