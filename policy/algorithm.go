// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/internal/spell"
)

type algorithm struct {
	name    string
	label   string // for people
	shape   string // see [AlgorithmKind]
	in      place  // its own fields
	example string // of its numbers
	reason  string // of a denial; init sets name + "_exceeded" if it is empty

	// instead maps fields of other algorithms to fields of this one. If a file has the other field, the parser does
	// not report the mapped fields as missing.
	instead map[string][]string

	// refused are the hints for fields of other algorithms that this one cannot have.
	refused map[string]string

	read func(*compiler, *parse.Object) numbers

	// parts, instead of read, reads an algorithm whose fields stand for several limits.
	parts func(*compiler, *parse.Object) []limitPart

	inConfig place // fields that only an algorithm_config has

	config, limit *parse.Table // of algorithm_config, and of an entry of limits

	owners map[place]*parse.Table // of a rule, a fallback_limit and an override in the short form
}

// algorithms lists all algorithms. The first is the default.
var algorithms = []*algorithm{
	{
		name: "token_bucket", label: "Token bucket", shape: "rate", in: inTokenBucket, example: `{"rps": 10, "burst": 20}`, read: (*compiler).readTokenBucket,
		instead: map[string][]string{"capacity": {"burst"}, "tokens": {"burst"}, "window": {"rate"}},
	},
	{
		name: "fixed_window", label: "Fixed window", shape: "window", in: inFixedWindow, example: `{"tokens": 100, "window": "1m"}`, read: (*compiler).readFixedWindow,
		instead: map[string][]string{"burst": {"capacity"}, "rate": {"tokens", "window"}, "rps": {"tokens", "window"},
			"tokens_per_second": {"tokens", "window"}},
	},
	{
		name: "sliding_window", label: "Sliding window", shape: "sliding", in: inSlidingWindow, example: `{"tokens": 100, "window": "1m"}`, instead: ofWindows,
		read: func(c *compiler, o *parse.Object) numbers { return c.readSliding(o, bucket.AlgorithmSlidingWindow) },
	},
	{
		name: "sliding_log", label: "Sliding log", shape: "sliding", in: inSlidingLog, example: `{"tokens": 100, "window": "1m"}`, instead: ofWindows,
		read: func(c *compiler, o *parse.Object) numbers { return c.readSliding(o, bucket.AlgorithmSlidingLog) },
	},
	{
		name: "leaky_bucket", label: "Leaky bucket", shape: "queue", in: inLeakyBucket, example: `{"rps": 10, "queue": 5}`, read: (*compiler).readLeakyBucket,
		instead: map[string][]string{"burst": {"queue"}, "tokens": {"rate"}, "window": {"rate"}, "max_reserved": {"queue"}},
	},
	{
		name: "cost_based", label: "Budget", shape: "budget", in: inCostBased, example: `{"budget": 1000, "period": "1d"}`, reason: "budget_exceeded", read: (*compiler).readBudget,
		instead: map[string][]string{"tokens": {"budget"}, "window": {"period"}, "burst": {"budget"}, "capacity": {"budget"},
			"rate": {"budget", "period"}, "rps": {"budget", "period"}, "tokens_per_second": {"budget", "period"}},
	},
	{
		name: "token_bucket_llm", label: "Tokens of a language model", shape: "tokens", in: inLLM, reason: reasonTPM, inConfig: inLLMConfig, example: `{"tokens_per_minute": 100000}`, parts: (*compiler).readLLM,
		instead: map[string][]string{"rate": {"tokens_per_minute"}, "rps": {"tokens_per_minute"}, "tokens_per_second": {"tokens_per_minute"}, "tokens": {"tokens_per_minute"},
			"burst": {"burst_tokens"}, "capacity": {"burst_tokens"}, "budget": {"tokens_per_day"}, "window": {"tokens_per_minute", "tokens_per_day"}},
	},
	{
		name: "concurrency", label: "Concurrency limit", shape: "slots", in: inConcurrency, example: `{"max": 5, "lease": "30s"}`, read: (*compiler).readConcurrency,
		instead: map[string][]string{"tokens": {"max"}, "burst": {"max"}, "capacity": {"max"}, "window": {"lease"}, "period": {"lease"}, "budget": {"max"}},
		refused: map[string]string{
			"leased":  "remove it: a slot is never handed out in advance",
			"shards":  "remove it: all slots of a key are counted together",
			"penalty": "remove it, or give it to a second limit: a slot is free as soon as its request ends",
			"queue":   "remove it: there is no rate at which slots become free",
		},
	},
}

var ofWindows = map[string][]string{"rate": {"tokens", "window"}, "rps": {"tokens", "window"},
	"tokens_per_second": {"tokens", "window"}, "burst": {"tokens"}, "capacity": {"tokens"}}

func algorithmNames() (names []string) {
	for _, a := range algorithms {
		names = append(names, a.name)
	}
	return names
}

// otherFields returns the fields that only other algorithms have.
func (a *algorithm) otherFields() foreignFields {
	owners := map[string][]string{}
	for _, other := range algorithms {
		for _, name := range namesIn(other.in) {
			owners[name] = append(owners[name], other.name)
		}
	}
	for _, name := range namesIn(a.in) {
		delete(owners, name)
	}
	all := foreignFields{}
	for name, of := range owners {
		s := parse.UnknownField{Replaces: a.instead[name], Reason: fmt.Sprintf("field %q belongs to %s, not to %s", name, parse.Enumerate(of, "and"), a.name)}
		switch {
		case s.Replaces != nil:
			s.Hint = "use " + strings.Join(s.Replaces, " and ")
		case a.refused[name] != "":
			s.Hint = a.refused[name]
		case len(of) == 1 && of[0] == "concurrency":
			s.Hint = "set algorithm: concurrency"
		case name == "leased":
			s.Hint = "remove it: this algorithm does not support leases"
		}
		all[name] = s
	}
	return all
}

// readAlgorithm reads the algorithm of a limit; the default is fallback. For a misspelled name, it returns the
// algorithm that is probably meant. It returns nil if the fields of the algorithm are unknown.
func (c *compiler) readAlgorithm(n *parse.Node, fallback *algorithm) *algorithm {
	f := n.Field("algorithm")
	if f == nil {
		return fallback
	}
	names := algorithmNames()
	if i := c.Choice(f, "algorithm", names, nil); i >= 0 {
		return algorithms[i]
	}
	near := spell.Nearest(strings.ToLower(f.Text), names)
	for _, a := range algorithms {
		if a.name == near {
			return a
		}
	}
	return guessAlgorithm(n)
}

// guessAlgorithm returns the algorithm that shares the most fields with n, or with the algorithm_config of n.
func guessAlgorithm(n *parse.Node) *algorithm {
	if config := n.Field("algorithm_config"); config != nil {
		n = config
	}
	best, most := algorithms[0], 0
	for _, a := range algorithms {
		has := 0
		for i := range n.Fields {
			if a.config.Has(n.Fields[i].Name) {
				has++
			}
		}
		if has > most {
			best, most = a, has
		}
	}
	return best
}
