// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"time"

	"github.com/metehq/mete/bench/exactness/wire"
)

// The names of the conditions.
const (
	Parallel = "64 callers"
	Skew     = "skewed clocks"
	Step     = "clock steps back"
	Failover = "failover"
	Killed   = "store killed"
	Eviction = "eviction"
	Change   = "changed limit"
	Two      = "two limits"
)

// A Condition is something that happens to a contender.
type Condition struct {
	Name   string
	Means  string
	Limits []wire.Limit
	run    func(*run)
}

var (
	perSecond = wire.Limit{Capacity: 10, Period: time.Second}
	perMinute = wire.Limit{Capacity: 10, Period: time.Minute}
	ofTeam    = wire.Limit{Capacity: 30, Period: time.Minute}
)

// shift is the difference of clocks, and the step of a clock.
const shift = 30 * time.Second

// Conditions are all conditions. The first limit of each is the one that is measured, and the second one has the waits
// of Retry-After, unless they are the same.
var Conditions = []Condition{
	{Parallel, "64 callers ask for one key at the same instant, 12 times. The limit is 10 per second.", []wire.Limit{perSecond}, runParallel},
	{Skew, "Two processes share a store. The clock of the second is 30 s ahead. The limit is 10 per second.", []wire.Limit{perSecond}, runSkew},
	{Step, "The wall clock of the machine, for the process and its store, steps back by 30 s. Monotonic clocks go on. The limit is 10 per second.", []wire.Limit{perSecond}, runStep},
	{Failover, "A Redis master with three sentinels dies. Its replica has not received the writes of the last 0.6 s. The limit is 10 per minute.", []wire.Limit{perMinute, perSecond}, runFailover},
	{Killed, "One client spends its tokens. Another one's connection to the store breaks four times after the store has run a call and before its answer arrives. Then the store is killed in a call and restarted. Redis logs every write to its disk. The limit is 10 per minute.", []wire.Limit{perMinute, perSecond}, runKilled},
	{Eviction, "A client at its limit waits while thousands of new keys ask once each and fill a memory of bounded size. In memory, the bound is 1,000 keys, or 32 KB for nginx. Redis runs with maxmemory and allkeys-lru. The limit is 10 per minute.", []wire.Limit{perMinute}, runEviction},
	{Change, "The limit changes from 10 per minute to 10 per second, and back after 2.5 s. A client with no token left may start empty, but must not stay locked out.", []wire.Limit{perMinute}, runChange},
	{Two, "Each request pays a user's limit of 10 per minute and a team's of 30 per minute. A request that one of them denies must not pay the other.", []wire.Limit{perMinute, ofTeam}, runTwo},
}
