// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A schedule is everything that a run depends on. Steps choose among what exists at their time by remainders, so that a
// schedule without some of its steps is a schedule, too.
type schedule struct {
	seed  uint64
	world worldKind
	nodes int
	steps []step
}

type step struct {
	kind stepKind
	seed uint64 // of the step's own choices
}

type stepKind uint8

const (
	request stepKind = iota // a client sends a request to a node
	proceed                 // a client goes on: it settles, releases, renews or repeats
	deliver                 // a message arrives at the store, and the answer at the caller
	execute                 // a message arrives at the store
	answer                  // an answer arrives at the caller
	loseRequest
	loseAnswer
	advance   // time passes
	stepClock // the clock of the store jumps
	partition // a node does not reach the store, or reaches it again
	crash     // a node is replaced by a new one
	recoverNode
	change // a node gets another version of the policy
	stepKinds
)

var stepNames = [stepKinds]string{"request", "proceed", "deliver", "execute", "answer", "lose request", "lose answer", "advance", "step clock", "partition", "crash", "recover", "change"}

// weights are the frequencies of the steps.
var weights = [stepKinds]int{request: 40, proceed: 25, deliver: 45, execute: 15, answer: 12, loseRequest: 3, loseAnswer: 4, advance: 14, stepClock: 1, partition: 2, crash: 1, recoverNode: 1, change: 2}

// A worldKind is the setting of a run.
type worldKind uint8

const (
	exactWorld        worldKind = iota // nothing refills: amounts must agree to a token
	refillWorld                        // buckets refill
	outageWorld                        // nothing refills, and nodes decide alone if the store does not answer
	leaseWorld                         // buckets refill, and nodes lease tokens
	versionsWorld                      // nodes have different versions of a limit
	singleWorld                        // as outageWorld, with one node
	transactionsWorld                  // as outageWorld, and clients have transactions that they may roll back
	overridesWorld                     // buckets refill, and an override replaces a limit
	shardsWorld                        // nothing refills, and a limit has shards
	worldKinds
)

var worldNames = [worldKinds]string{"exact", "refill", "outage", "leases", "versions", "single node", "transactions", "overrides", "shards"}

// newSchedule returns the schedule of a seed.
func newSchedule(seed uint64, steps int) *schedule {
	r := rand.New(rand.NewPCG(seed, 0))
	s := &schedule{seed: seed, world: worldKind(r.IntN(int(shardsWorld))), nodes: 2 + r.IntN(3)}
	if s.world == leaseWorld && rand.New(rand.NewPCG(seed, 6)).IntN(2) == 0 { // a run with leases has several times the operations of others
		s.world = shardsWorld
	}
	if s.world == singleWorld {
		s.nodes = 1
	}
	total := 0
	for _, w := range weights {
		total += w
	}
	for range steps {
		kind, n := stepKind(0), r.IntN(total)
		for n >= weights[kind] {
			n -= weights[kind]
			kind++
		}
		s.steps = append(s.steps, step{kind, r.Uint64()})
	}
	return s
}

func (s *schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, world %s, %d nodes, %d steps:", s.seed, worldNames[s.world], s.nodes, len(s.steps))
	for _, step := range s.steps {
		fmt.Fprintf(&b, "\n\t{%q, %d}", stepNames[step.kind], step.seed)
	}
	return b.String()
}

// shrink removes steps while fails reports a failure, and returns the shortest schedule that it found.
func (s *schedule) shrink(fails func(*schedule) bool, until time.Time) *schedule {
	best := *s
	for removed := true; removed; {
		removed = false
		for size := max(len(best.steps)/2, 1); size > 0; size /= 2 {
			for at := 0; at+size <= len(best.steps); {
				if time.Now().After(until) {
					return &best
				}
				shorter := best
				shorter.steps = slices.Concat(best.steps[:at], best.steps[at+size:])
				if fails(&shorter) {
					best, removed = shorter, true
				} else {
					at += size
				}
			}
		}
	}
	return &best
}
