// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/metehq/mete/bucket"
)

// counts are the numbers of events of runs, by their names.
type counts map[string]int

func (c counts) add(other counts) {
	for name, n := range other {
		c[name] += n
	}
}

// A tally counts the runs, the operations and the events of each world.
type tally [worldKinds]counts

func (sum *tally) add(world worldKind, out *outcome) {
	if sum[world] == nil {
		sum[world] = counts{}
	}
	sum[world].add(out.counts)
	sum[world]["runs"]++
	sum[world]["operations"] += out.operations
}

func (sum *tally) log(t *testing.T) {
	t.Helper()
	for world, c := range sum {
		t.Logf("%s: %v", worldNames[world], c)
	}
}

// countLimits counts buckets with other limits than one of the policy.
func (s *simulation) countLimits() {
	limits := map[string]int{}
	for at := range s.ledger.buckets {
		if limits[at.key]++; limits[at.key] == 2 {
			s.counts["buckets with several limits"]++
		}
		if s.plan.world == overridesWorld && at.limit.Capacity() == 10*bucket.Token { // of the override
			s.counts["buckets with an override"]++
		}
	}
}

// minimums are the least numbers of events in the runs of TestSimulation_ReachesItsEvents: about a third of what they have.
var minimums = tally{
	exactWorld: {"runs": 20, "admitted": 300, "denied": 180, "degraded denials": 280, "forced": 70, "repeated": 20, "canceled": 15,
		"settled": 10, "expired": 8, "refunded": 20, "slots": 60},
	refillWorld: {"runs": 20, "admitted": 400, "denied": 70, "degraded denials": 250, "forced": 70, "repeated": 35, "reserved": 25,
		"canceled": 35, "settled": 35, "expired": 20, "refunded": 20, "slots": 80},
	outageWorld:       {"runs": 20, "admitted": 200, "denied": 300, "admitted locally": 70, "forced": 60, "repeated": 25},
	leaseWorld:        {"runs": 8, "admitted": 2000, "denied": 80, "degraded denials": 1000, "leased": 600, "loans": 60},
	versionsWorld:     {"runs": 20, "admitted": 600, "denied": 160, "reserved": 35, "canceled": 30, "repeated": 65, "buckets with several limits": 30},
	singleWorld:       {"runs": 20, "admitted": 200, "denied": 240, "admitted locally": 80, "forced": 55, "repeated": 18},
	transactionsWorld: {"runs": 20, "admitted": 200, "denied": 170, "admitted locally": 60, "forced": 75, "committed": 85, "rolled back": 85},
	overridesWorld:    {"runs": 20, "admitted": 540, "denied": 70, "reserved": 10, "canceled": 30, "buckets with an override": 12},
	shardsWorld:       {"runs": 6, "admitted": 120, "denied": 90, "degraded denials": 150, "markers": 45, "found markers": 30},
}

// A world that no longer reaches its events would find nothing, and its runs would pass.
func TestSimulation_ReachesItsEvents(t *testing.T) {
	var sum tally
	all := 0
	for seed := uint64(1); seed <= 300; seed++ {
		plan := newSchedule(seed, *maxSteps)
		out := simulate(t, plan, options{})
		sum.add(plan.world, &out)
		all += out.operations
	}
	sum.log(t)
	for world, least := range minimums {
		for name, n := range least {
			if got := sum[world][name]; got < n {
				t.Errorf("%s: %s %d times, want at least %d", worldNames[world], name, got, n)
			}
		}
		if got := sum[world]["operations"]; got > all/2 {
			t.Errorf("%s has %d of %d operations, want at most a half", worldNames[world], got, all)
		}
	}
}
