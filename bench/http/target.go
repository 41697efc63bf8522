// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/metehq/mete/bench/contest"
)

var targets = []contest.Target{
	{Scenario: "take", Callers: 64, Figure: contest.Takes, Subjects: []string{mete}, Rival: plain, Factor: 0.75},
	{Scenario: "take", Callers: 64, Figure: contest.Takes, Subjects: []string{mete}, Rival: gubernator, Factor: 3.5},
	{Scenario: "take", Callers: 64, Figure: contest.Takes, Subjects: []string{mete}, Rival: gubernatorScaled, Factor: 3.5},
	{Scenario: "batch", Callers: 64, Figure: contest.Takes, Subjects: []string{mete}, Rival: gubernator, Factor: 4},
	{Scenario: "batch", Callers: 64, Figure: contest.Takes, Subjects: []string{mete}, Rival: gubernatorScaled, Factor: 4},
	{Scenario: "proxy", Callers: 1, Figure: contest.Takes, Subjects: []string{mete}, Rival: proxy, Factor: 0.9},
	{Scenario: "proxy", Callers: 16, Figure: contest.Takes, Subjects: []string{mete}, Rival: proxy, Factor: 0.9},
	{Scenario: "proxy", Callers: 64, Figure: contest.Takes, Subjects: []string{mete}, Rival: proxy, Factor: 0.9},
	{Scenario: "proxy", Callers: 256, Figure: contest.Takes, Subjects: []string{mete}, Rival: proxy, Factor: 0.9},
	{Scenario: "proxy", Callers: 1, Figure: contest.P99, Subjects: []string{mete}, Rival: proxy, Most: 1.15},
	{Scenario: "proxy", Callers: 16, Figure: contest.P99, Subjects: []string{mete}, Rival: proxy, Most: 1.15},
	{Scenario: "proxy", Callers: 64, Figure: contest.P99, Subjects: []string{mete}, Rival: proxy, Most: 1.15},
	{Scenario: "proxy", Callers: 256, Figure: contest.P99, Subjects: []string{mete}, Rival: proxy, Most: 1.15},
	{Scenario: "gateway", Callers: 1, Figure: contest.P50, Subjects: asking, Rival: nginx, Added: 100 * time.Microsecond},
	{Scenario: "paced", Callers: 16, Figure: contest.P50, Subjects: asking, Rival: nginx, Added: 100 * time.Microsecond},
}

var asking = []string{asks, asks1}
