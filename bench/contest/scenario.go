// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"context"
	"fmt"
	"time"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/workload"
)

// A Scenario is one measurement for all entrants, with several numbers of callers.
type Scenario struct {
	Name   string // short: for -only, JSON and the targets
	Title  string
	Quota  subject.Quota
	Keys   int  // number of users
	Calls  int  // length of the sequence, which repeats
	Tiered bool // whether a take needs a user, its team and everyone
}

// Wanted is the right answer to every call except the first one of a key.
func (sc Scenario) Wanted() bool { return sc.Quota != subject.Deny }

func (sc Scenario) eachKey() workload.Calls { return sc.tiers(workload.Each(sc.Keys)) }

func (sc Scenario) randomKeys() workload.Calls { return sc.tiers(workload.Uniform(sc.Keys, sc.Calls)) }

func (sc Scenario) tiers(users workload.Keys) workload.Calls {
	if sc.Tiered {
		return workload.Calls{users.Everyone(), users.Teams(), users}
	}
	return workload.Calls{users}
}

// An Event is a scenario with its entrants.
type Event struct {
	Scenario Scenario
	Entrants []Entrant
}

type Entrant struct {
	Name string

	// Turn measures the entrant once on a server without buckets.
	Turn func(context.Context, Task) (Sample, error)
}

// A Task is the work of an entrant in a turn.
type Task struct {
	Scenario Scenario
	Callers  int
	Time     time.Duration

	known, random workload.Calls
}

// A Sample holds the figures of a turn.
type Sample struct {
	Takes    float64 // per second
	P50, P99 time.Duration
	CPU      time.Duration // of the server, per take; 0 if not measured
}

// A Cell is a scenario with a number of callers and its entrants.
type Cell struct {
	Scenario Scenario
	Callers  int
	Entrants []Entrant
}

func (c Cell) String() string { return fmt.Sprintf("%s/%d", c.Scenario.Name, c.Callers) }

// Cells returns the cells that c selects. No cell is an error.
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
