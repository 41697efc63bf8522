// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject/inredis"
)

// The subjects of the targets: the store, and the limiter that programs use.
var (
	exact  = []string{inredis.MeteStore, inredis.MeteLimiter}
	leased = []string{inredis.MeteStoreLeased, inredis.MeteLimiterLeased}
)

var targets = []contest.Target{
	{Scenario: "hot", Callers: 64, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 6},
	{Scenario: "hot", Callers: 256, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 12},
	{Scenario: "hot", Callers: 64, Figure: contest.Takes, Subjects: leased, Rival: inredis.RedisRate, Factor: 50},
	{Scenario: "keys", Callers: 1, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 0.95},
	{Scenario: "keys", Callers: 16, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 1.7},
	{Scenario: "keys", Callers: 64, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 3},
	{Scenario: "keys", Callers: 64, Figure: contest.P99, Subjects: exact, Rival: inredis.RedisRate, Most: 0.4},
	{Scenario: "keys", Callers: 64, Figure: contest.Takes, Subjects: exact, Rival: inredis.Window, Factor: 1.3},
	{Scenario: "keys", Callers: 256, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 5},
	{Scenario: "three", Callers: 64, Figure: contest.Takes, Subjects: exact, Rival: inredis.RedisRate, Factor: 3.2},
}
