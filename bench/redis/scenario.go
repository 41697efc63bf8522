// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inredis"
	"github.com/metehq/mete/bench/workload"
)

// A scenario is one question put to every subject, by several numbers of
// callers.
type scenario struct {
	name   string // short: for -only, JSON and the targets
	title  string
	quota  subject.Quota
	keys   int // users
	calls  int // before the sequence starts over
	tiered bool
	leased bool // whether leases have a place
}

const many = 10_000

var scenarios = []scenario{
	{name: "hot", title: "One hot key, allowed", quota: subject.Allow, keys: 1, calls: 1, leased: true},
	{name: "keys", title: "10,000 keys, uniformly, allowed", quota: subject.Allow, keys: many, calls: workload.UniformCalls},
	{name: "three", title: "Three limits in one take: of 10,000 users, of their 100 teams, of everyone", quota: subject.Allow,
		keys: many, calls: workload.UniformCalls, tiered: true},
	{name: "deny", title: "One hot key, denied", quota: subject.Deny, keys: 1, calls: 1},
}

// has reports whether a subject has a place in sc.
func (sc scenario) has(s inredis.Subject) bool {
	switch s.Kind {
	case inredis.Leased:
		return sc.leased
	case inredis.Floor:
		return sc.quota != subject.Deny
	default:
		return true
	}
}

// calls are the keys of one call after another, those of a call in order.
type calls []workload.Keys

// known returns calls that ask for every key.
func (sc scenario) known() calls { return sc.tiers(workload.Each(sc.keys)) }

// random returns the calls of a measurement.
func (sc scenario) random() calls { return sc.tiers(workload.Uniform(sc.keys, sc.calls)) }

func (sc scenario) tiers(users workload.Keys) calls {
	if sc.tiered {
		return calls{users.Everyone(), users.Teams(), users}
	}
	return calls{users}
}

func (c calls) len() int { return c[0].Len() }

// put writes the keys of call i to dst.
func (c calls) put(dst []string, i int) {
	for n, keys := range c {
		dst[n] = keys.At(i)
	}
}

// A cell is a scenario, a number of callers, and who is measured there.
type cell struct {
	scenario scenario
	callers  int
	subjects []inredis.Subject
}

func (c cell) String() string { return fmt.Sprintf("%s/%d", c.scenario.name, c.callers) }

// cells returns what c asks for.
func (c config) cells() []cell {
	var all []cell
	for _, sc := range scenarios {
		for _, callers := range c.callers {
			at := cell{scenario: sc, callers: callers}
			for _, s := range inredis.All {
				if sc.has(s) && c.only.MatchString(at.String()+"/"+s.Name) {
					at.subjects = append(at.subjects, s)
				}
			}
			if len(at.subjects) > 0 {
				all = append(all, at)
			}
		}
	}
	return all
}
