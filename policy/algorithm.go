// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/spell"
)

// An algorithm is a way to limit that policy files have a word for.
type algorithm struct {
	name   string
	fields []string // of its own; all have costFields as well

	example string // of its numbers

	// instead says which of its own fields stand for those of other algorithms,
	// which would else be missing as well.
	instead map[string][]string

	// read reads what a limit's own fields say.
	read func(*compiler, *object) numbers

	config, limit schema // of algorithm_config, and of an entry of limits
}

var costFields = []string{"cost_source", "fixed_cost", "default_cost", "min_cost", "max_cost"}

// algorithms are those that exist. The first is that of limits which name none.
var algorithms = complete([]*algorithm{
	{
		name: "token_bucket", example: `{"rps": 10, "burst": 20}`,
		fields: []string{"tokens_per_second", "rps", "rate", "burst", "refill", "anchor", "start",
			"max_reserved", "shards", "leased", "staged_actions"},
		instead: map[string][]string{"capacity": {"burst"}, "tokens": {"burst"}, "window": {"rate"}},
		read:    (*compiler).tokenBucket,
	},
	{
		name: "fixed_window", example: `{"tokens": 100, "window": "1m"}`,
		fields: []string{"tokens", "window", "anchor", "start", "capacity", "max_reserved", "leased", "staged_actions"},
		instead: map[string][]string{"burst": {"capacity"}, "rate": {"tokens", "window"}, "rps": {"tokens", "window"},
			"tokens_per_second": {"tokens", "window"}},
		read: (*compiler).fixedWindow,
	},
	{
		name: "sliding_window", example: `{"tokens": 100, "window": "1m"}`, fields: []string{"tokens", "window", "staged_actions"}, instead: ofWindows,
		read: func(c *compiler, o *object) numbers { return c.sliding(o, bucket.SlidingWindow) },
	},
	{
		name: "sliding_log", example: `{"tokens": 100, "window": "1m"}`, fields: []string{"tokens", "window", "staged_actions"}, instead: ofWindows,
		read: func(c *compiler, o *object) numbers { return c.sliding(o, bucket.SlidingLog) },
	},
	{
		name: "leaky_bucket", example: `{"rps": 10, "queue": 5}`,
		fields:  []string{"tokens_per_second", "rps", "rate", "queue", "capacity"},
		instead: map[string][]string{"burst": {"queue"}, "tokens": {"rate"}, "window": {"rate"}, "max_reserved": {"queue"}},
		read:    (*compiler).leakyBucket,
	},
	{
		name: "cost_based", example: `{"budget": 1000, "period": "1d"}`,
		fields: []string{"budget", "period", "start", "cost_key", "leased", "staged_actions"},
		instead: map[string][]string{"tokens": {"budget"}, "window": {"period"}, "burst": {"budget"}, "capacity": {"budget"},
			"rate": {"budget", "period"}, "rps": {"budget", "period"}, "tokens_per_second": {"budget", "period"}},
		read: (*compiler).budget,
	},
})

// reason is that of a denial.
func (a *algorithm) reason() string {
	if a.name == "cost_based" {
		return "budget_exceeded"
	}
	return a.name + "_exceeded"
}

var ofWindows = map[string][]string{"rate": {"tokens", "window"}, "rps": {"tokens", "window"},
	"tokens_per_second": {"tokens", "window"}, "burst": {"tokens"}, "capacity": {"tokens"}}

// laterAlgorithms are words that are known, and have nothing behind them.
var laterAlgorithms = map[string]string{"token_bucket_llm": ": say token_bucket with cost_source, and settle what was used"}

// complete fills in the schemas, for which each algorithm must know the others.
func complete(list []*algorithm) []*algorithm {
	owners := map[string][]string{}
	for _, a := range list {
		for _, f := range a.fields {
			owners[f] = append(owners[f], a.name)
		}
	}
	for _, a := range list {
		fields := slices.Concat(a.fields, costFields)
		others := others{than: a.name, owners: owners, instead: a.instead}
		a.config = schema{what: "algorithm_config", fields: fields, others: &others, foreign: foreignLimit, example: a.example}
		a.limit = schema{what: "a limit", fields: slices.Concat(limitFields, fields), others: &others, foreign: foreignLimit, example: a.example}
	}
	return list
}

var limitFields = []string{"name", "algorithm", "algorithm_config"}

// anyFields are the fields of all algorithms.
func anyFields() []string {
	all := slices.Clone(costFields)
	for _, a := range algorithms {
		all = append(all, a.fields...)
	}
	return all
}

// algorithm reads how a limit works in any object that may say it; fallback is
// what the object means that does not. It is nil where the rest of the object
// speaks of something that is not known. A misspelt name does not excuse it.
func (c *compiler) algorithm(n *node, fallback *algorithm) *algorithm {
	f := n.field("algorithm")
	if f == nil {
		return fallback
	}
	names := make([]string, len(algorithms))
	for i, a := range algorithms {
		names[i] = a.name
	}
	name, ok := c.choice(f, "algorithm", names, laterAlgorithms)
	if _, later := laterAlgorithms[f.text]; later {
		return nil
	}
	if !ok {
		name = spell.Nearest(strings.ToLower(f.text), names)
	}
	for _, a := range algorithms {
		if a.name == name {
			return a
		}
	}
	return likely(n)
}

// likely is the algorithm that n, or the algorithm_config of n, has most fields
// of.
func likely(n *node) *algorithm {
	if config := n.field("algorithm_config"); config != nil {
		n = config
	}
	best, most := algorithms[0], 0
	for _, a := range algorithms {
		has := 0
		for _, f := range n.fields {
			if slices.Contains(a.fields, f.name) {
				has++
			}
		}
		if has > most {
			best, most = a, has
		}
	}
	return best
}
