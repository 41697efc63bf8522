// SPDX-License-Identifier: Apache-2.0

package promela

import "strings"

// A model is a protocol in Promela. Each fault takes a protection out of it.
type model struct {
	file   string
	runs   []variant
	faults []fault
}

// A variant is a search with preprocessor definitions. A quick one takes a second. A whole one executes every statement of the
// model, which shows that no condition of the model is too strict.
type variant struct {
	defines []string
	quick   bool
	whole   bool
}

func (v *variant) name() string {
	if len(v.defines) == 0 {
		return ""
	}
	return "/" + strings.Join(v.defines, ",")
}

// A fault is a preprocessor definition of a model. The header of the model describes it. breaks is the property that an
// execution then breaks.
type fault struct {
	name    string
	defines []string
	breaks  string
	quick   bool
}

// parts are files that models include.
var parts = []string{"bound.pml"}

var all = []model{
	{
		file: "cancel.pml",
		runs: []variant{{whole: true}},
		faults: []fault{
			{name: "SECURITY_1A", breaks: "G1", quick: true},
			{name: "SECURITY_1B", breaks: "G1"},
		},
	}, {
		file: "slots.pml",
		runs: []variant{{whole: true}},
		faults: []fault{
			{name: "SECURITY_2", breaks: "G1"},
			{name: "SECURITY_6", breaks: "G1", quick: true},
			{name: "WITHOUT_MARKER", breaks: "G1"},
			{name: "WITHOUT_OWNERS", breaks: "G1"},
			{name: "WITHOUT_UNDO", breaks: "G2"},
		},
	},
	{
		file: "lease.pml",
		runs: []variant{
			{defines: []string{"LOANS=2", "JUMP=2"}},
			{defines: []string{"CAPACITY=3", "SHARE=3", "LOANS=3", "TICKS=4", "TAKERS=1"}, whole: true},
			{defines: []string{"NODES=2", "LOANS=1", "TICKS=4", "TAKERS=1"}},
		},
		faults: []fault{
			{name: "WITHOUT_FLOOR", defines: []string{"LOANS=2"}, breaks: "G1"},
			{name: "WITHOUT_SEQ", defines: []string{"LOANS=2"}, breaks: "G1"},
			{name: "WITHOUT_SPENT", defines: []string{"LOANS=2"}, breaks: "G1"},
			{name: "WITHOUT_KEPT", defines: []string{"LOANS=2"}, breaks: "G1"},
			{name: "WITHOUT_REBASE", defines: []string{"CAPACITY=3", "SHARE=3", "LOANS=3", "TICKS=4", "TAKERS=1"}, breaks: "G1"},
			{name: "WITHOUT_RECOUNT", defines: []string{"LOANS=2"}, breaks: "G1"},
			{name: "WITHOUT_REQUEST_TIME", defines: []string{"LOANS=2"}, breaks: "G1"},
			{name: "WITHOUT_GRACE", defines: []string{"LOANS=2", "JUMP=2"}, breaks: "G1"},
		},
	},
	{
		file: "hold.pml",
		runs: []variant{{whole: true}, {defines: []string{"RATE=0"}}},
		faults: []fault{
			{name: "SECURITY_1B", breaks: "G1"},
			{name: "WITHOUT_STATE", breaks: "G1"},
			{name: "WITHOUT_OVER", defines: []string{"RATE=0"}, breaks: "ONCE"},
			{name: "WITHOUT_STEP", defines: []string{"RATE=0"}, breaks: "ONCE"},
			{name: "WITHOUT_NOTES", breaks: "G1"},
		},
	},
	{
		file: "concurrency.pml",
		runs: []variant{{}, {defines: []string{"FAULTS=2", "TICKS=3"}, whole: true}},
		faults: []fault{
			{name: "WITHOUT_LIVE", breaks: "G13"},
			{name: "WITHOUT_STEP", breaks: "G13"},
			{name: "WITHOUT_NAMES", breaks: "G13"},
			{name: "WITHOUT_CHECK", breaks: "G13", quick: true},
			{name: "WITHOUT_AGAIN", breaks: "FREE"},
		},
	},
	{
		file: "outage.pml",
		runs: []variant{{whole: true}, {defines: []string{"RATE=0"}}, {defines: []string{"CAPACITY=1", "RATE=0"}}},
		faults: []fault{
			{name: "SECURITY_3", breaks: "G1"},
			{name: "WITHOUT_UNHELD", defines: []string{"CAPACITY=1", "RATE=0"}, breaks: "G1"},
			{name: "REFILLS", breaks: "G1"},
			{name: "ADVERSARY_V5", breaks: "G1"},
			{name: "RECOVERY_FIRST", breaks: "G1"},
			{name: "MEMORY_FIRST", breaks: "G1"},
			{name: "COMMITS", breaks: "G1"},
			{name: "WITHOUT_ID", defines: []string{"RATE=0"}, breaks: "COSTS"},
			{name: "WITHOUT_CHARGE", breaks: "G1"},
			{name: "WITHOUT_MEMORY", breaks: "G1"},
		},
	},
	{
		file: "clock.pml",
		runs: []variant{{quick: true, whole: true}},
		faults: []fault{
			{name: "SECURITY_8", breaks: "G1", quick: true},
			{name: "WITHOUT_FULL", breaks: "G1"},
			{name: "WITHOUT_LOCK", breaks: "G1"},
		},
	},
	{
		file: "shards.pml",
		runs: []variant{{quick: true, whole: true}},
		faults: []fault{
			{name: "SECURITY_7", breaks: "G2"},
			{name: "WITHOUT_REFUND", breaks: "G2"},
		},
	},
	{
		file: "several.pml",
		runs: []variant{{quick: true, whole: true}},
		faults: []fault{
			{name: "ADVERSARY_V7", breaks: "G2"},
			{name: "WITHOUT_ORDER", breaks: "invalid end state"},
			{name: "WITHOUT_MARKS", breaks: "G2"},
		},
	},
	{
		file: "word.pml",
		runs: []variant{{quick: true, whole: true}},
		faults: []fault{
			{name: "ADVERSARY_V8", breaks: "G3", quick: true},
			{name: "WITHOUT_SWAP", breaks: "G1"},
		},
	},
	{
		file:   "versions.pml",
		runs:   []variant{{quick: true, whole: true}},
		faults: []fault{{name: "ADVERSARY_V2", breaks: "G1", quick: true}},
	},
}
