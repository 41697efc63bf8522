// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"context"
	"fmt"
	"time"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

// A Scenario is one question put to everyone, by several numbers of callers.
type Scenario struct {
	Name   string // short: for -only, JSON and the targets
	Title  string
	Quota  subject.Quota
	Keys   int  // users
	Calls  int  // before the sequence starts over
	Tiered bool // whether a take asks for a user, its team and everyone
}

// Wanted is the answer to every call but a key's first.
func (sc Scenario) Wanted() bool { return sc.Quota != subject.Deny }

// known returns calls that ask for every key.
func (sc Scenario) known() workload.Calls { return sc.tiers(workload.Each(sc.Keys)) }

// random returns the calls of a measurement.
func (sc Scenario) random() workload.Calls { return sc.tiers(workload.Uniform(sc.Keys, sc.Calls)) }

func (sc Scenario) tiers(users workload.Keys) workload.Calls {
	if sc.Tiered {
		return workload.Calls{users.Everyone(), users.Teams(), users}
	}
	return workload.Calls{users}
}

// An Event is a scenario and who has a place in it.
type Event struct {
	Scenario Scenario
	Entrants []Entrant
}

// An Entrant is one of those compared.
type Entrant struct {
	Name string

	// Turn measures the entrant once, over a server without buckets.
	Turn func(context.Context, Task) (Sample, error)
}

// A Task is what an entrant does in a turn.
type Task struct {
	Scenario Scenario
	Callers  int
	Time     time.Duration

	known, random workload.Calls
}

// A Sample is what came of a turn.
type Sample struct {
	Takes    float64 // a second
	P50, P99 time.Duration
	CPU      time.Duration // of the server, a take; 0 where nobody looked
}

// A Cell is a scenario with a number of callers, and who is measured there.
type Cell struct {
	Scenario Scenario
	Callers  int
	Entrants []Entrant
}

// String returns scenario/callers.
func (c Cell) String() string { return fmt.Sprintf("%s/%d", c.Scenario.Name, c.Callers) }

// Cells returns what c asks for, of which there is something.
func (c Config) Cells(events []Event) ([]Cell, error) {
	var all []Cell
	for _, e := range events {
		for _, callers := range c.Callers {
			at := Cell{Scenario: e.Scenario, Callers: callers}
			for _, entrant := range e.Entrants {
				if c.Only.MatchString(at.String() + "/" + entrant.Name) {
					at.Entrants = append(at.Entrants, entrant)
				}
			}
			if len(at.Entrants) > 0 {
				all = append(all, at)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("-only %q matches no scenario/callers/subject", c.Only)
	}
	return all, nil
}
