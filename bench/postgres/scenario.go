// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inpostgres"
	"github.com/metehq/mete/bench/subject/remote"
	"github.com/metehq/mete/bench/workload"
)

const many = 10_000

type scenario struct {
	contest.Scenario
	logged bool
}

var scenarios = []scenario{
	{contest.Scenario{Name: "keys", Title: "10,000 keys, uniformly, allowed; unlogged tables", Quota: subject.Allow,
		Keys: many, Calls: workload.UniformCalls}, false},
	{contest.Scenario{Name: "keys-logged", Title: "10,000 keys, uniformly, allowed; logged tables", Quota: subject.Allow,
		Keys: many, Calls: workload.UniformCalls}, true},
	{contest.Scenario{Name: "hot", Title: "One hot key, allowed; unlogged tables", Quota: subject.Allow, Keys: 1, Calls: 1}, false},
	{contest.Scenario{Name: "hot-logged", Title: "One hot key, allowed; logged tables", Quota: subject.Allow, Keys: 1, Calls: 1}, true},
	{contest.Scenario{Name: "deny", Title: "One hot key, denied; logged tables", Quota: subject.Deny, Keys: 1, Calls: 1}, true},
}

func (s *server) events(rival *flexible) []contest.Event {
	var events []contest.Event
	for _, sc := range scenarios {
		e := contest.Event{Scenario: sc.Scenario}
		for _, subject := range inpostgres.All {
			e.Entrants = append(e.Entrants, s.newEntrant(sc, subject))
		}
		e.Entrants = append(e.Entrants, contest.Entrant{
			Name: flexibleName,
			Turn: func(ctx context.Context, task contest.Task) (contest.Sample, error) {
				return rival.turn(ctx, task, s.place(sc, task))
			},
		})
		events = append(events, e)
	}
	return events
}

func (s *server) newEntrant(sc scenario, subject inpostgres.Subject) contest.Entrant {
	turn := func(ctx context.Context, task contest.Task) (contest.Sample, error) {
		return contest.Loop{
			Open: func(ctx context.Context) (remote.Limiter, error) {
				return subject.New(ctx, s.place(sc, task), sc.Quota)
			},
			Settle: s.settle,
		}.Turn(ctx, task)
	}
	return contest.Entrant{Name: subject.Name, Turn: turn}
}

func (s *server) place(sc scenario, task contest.Task) inpostgres.Place {
	return inpostgres.Place{URL: s.url(), Logged: sc.logged, Connections: min(task.Callers, s.connections)}
}
