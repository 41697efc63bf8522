// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject/inpostgres"
)

// mete are the subjects of the targets: the store, and the limiter that programs use.
var mete = []string{inpostgres.MeteStore, inpostgres.MeteLimiter}

var targets = []contest.Target{
	{Scenario: "keys", Callers: 64, Figure: contest.Takes, Subjects: mete, Rival: inpostgres.Classic, Factor: 8},
	{Scenario: "keys", Callers: 64, Figure: contest.P99, Subjects: mete, Rival: inpostgres.Classic, Most: 0.2},
	{Scenario: "keys", Callers: 1, Figure: contest.Takes, Subjects: mete, Rival: inpostgres.Single, Factor: 0.9},
	{Scenario: "keys-logged", Callers: 64, Figure: contest.Takes, Subjects: mete, Rival: inpostgres.Classic, Factor: 8},
	{Scenario: "keys-logged", Callers: 64, Figure: contest.P99, Subjects: mete, Rival: inpostgres.Classic, Most: 0.2},
	{Scenario: "keys-logged", Callers: 64, Figure: contest.Takes, Subjects: mete, Rival: flexibleName, Factor: 4},
	{Scenario: "keys-logged", Callers: 1, Figure: contest.Takes, Subjects: mete, Rival: inpostgres.Single, Factor: 0.9},
	{Scenario: "hot", Callers: 64, Figure: contest.Takes, Subjects: mete, Rival: inpostgres.Classic, Factor: 60},
	{Scenario: "hot", Callers: 64, Figure: contest.P99, Subjects: mete, Rival: inpostgres.Classic, Most: 0.2},
	{Scenario: "hot-logged", Callers: 64, Figure: contest.Takes, Subjects: mete, Rival: inpostgres.Classic, Factor: 60},
	{Scenario: "hot-logged", Callers: 64, Figure: contest.P99, Subjects: mete, Rival: inpostgres.Classic, Most: 0.2},
	{Scenario: "hot-logged", Callers: 64, Figure: contest.Takes, Subjects: mete, Rival: flexibleName, Factor: 40},
}
