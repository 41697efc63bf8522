// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inredis"
	"github.com/metehq/mete/bench/subject/remote"
	"github.com/metehq/mete/bench/workload"
)

const many = 10_000

var hot = contest.Scenario{Name: "hot", Title: "One hot key, allowed", Quota: subject.Allow, Keys: 1, Calls: 1}

var scenarios = []contest.Scenario{
	hot,
	{Name: "keys", Title: "10,000 keys, uniformly, allowed", Quota: subject.Allow, Keys: many, Calls: workload.UniformCalls},
	{Name: "three", Title: "Three limits in one take: of 10,000 users, of their 100 teams, of everyone", Quota: subject.Allow,
		Keys: many, Calls: workload.UniformCalls, Tiered: true},
	{Name: "deny", Title: "One hot key, denied", Quota: subject.Deny, Keys: 1, Calls: 1},
}

func (s *server) events() []contest.Event {
	var events []contest.Event
	for _, sc := range scenarios {
		e := contest.Event{Scenario: sc}
		for _, subject := range inredis.All {
			if contains(sc, subject) {
				e.Entrants = append(e.Entrants, s.newEntrant(sc, subject))
			}
		}
		events = append(events, e)
	}
	return events
}

func contains(sc contest.Scenario, s inredis.Subject) bool {
	switch s.Kind {
	case inredis.Leased:
		return sc == hot
	case inredis.Floor:
		return sc.Quota != subject.Deny
	default:
		return true
	}
}

func (s *server) newEntrant(sc contest.Scenario, subject inredis.Subject) contest.Entrant {
	loop := contest.Loop{
		Open: func(context.Context) (remote.Limiter, error) { return subject.New(s.addr, sc.Quota) },
		CPU:  s.cpu,
	}
	return contest.Entrant{Name: subject.Name, Turn: loop.Turn}
}
