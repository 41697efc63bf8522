// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// token_bucket_llm limits the tokens of language models: a token bucket per minute and, if it is set, a budget per day in
// UTC. They are two limits, which are charged together.

const (
	reasonTPM = "tpm_exceeded"
	reasonTPD = "tpd_exceeded"
)

// A limitPart is one of the limits that the fields of one limit stand for.
type limitPart struct {
	name    string // appended to the name of the limit
	reason  string
	numbers numbers
}

// readLLM reads the limits of token_bucket_llm.
func (c *compiler) readLLM(o *parse.Object) (parts []limitPart) {
	minute := numbers{}
	if f := o.Require("tokens_per_minute", "the tokens of prompts and completions per minute, as in 100000"); f != nil {
		rate, ok := c.Tokens(f, "tokens_per_minute")
		minute.Rate, minute.ok = bucket.Rate{Tokens: rate, Per: time.Minute}, ok
		minute.Capacity = rate
	}
	if f := o.Field("burst_tokens"); f != nil {
		burst, ok := c.Tokens(f, "burst_tokens")
		if ok && minute.ok && burst < minute.Rate.Tokens {
			c.Add(f, fmt.Sprintf("burst_tokens is below the tokens_per_minute of %v", minute.Rate.Tokens), "raise it, or remove it")
			ok = false
		}
		minute.Capacity, minute.ok = burst, minute.ok && ok
	}
	minute.most, minute.mostIs = minute.Capacity, fmt.Sprintf("burst_tokens of %v", minute.Capacity)
	parts = append(parts, limitPart{"/tpm", reasonTPM, minute})
	if f := o.Field("tokens_per_day"); f != nil {
		budget, ok := c.Tokens(f, "tokens_per_day")
		parts = append(parts, limitPart{"/tpd", reasonTPD, numbers{
			Spec: bucket.Spec{Algorithm: bucket.AlgorithmStepped, Capacity: budget, Rate: bucket.Rate{Tokens: budget, Per: 24 * time.Hour},
				Anchor: bucket.AnchorCalendar, Calendar: bucket.Calendar{Window: bucket.CalendarDay}},
			ok: ok, most: budget, mostIs: fmt.Sprintf("tokens_per_day of %v", budget),
		}})
	}
	return parts
}

// readLLMCost reads the cost of requests under the parts of a token_bucket_llm.
func (c *compiler) readLLMCost(o *parse.Object, parts []limitPart) cost {
	k := cost{max: bucket.MaxTokens}
	c.readAICost(o, false, StreamClose, &k)
	k.source = c.matcher.attributes[k.slot]
	least := TokenUsage{Input: 1, Output: min(k.ai.defaultCompletion, k.ai.maxCompletion)}
	for _, p := range parts {
		if cost := k.ai.weights.cost(&least); p.numbers.ok && cost > p.numbers.most {
			c.warn(o.Node, "unaffordable-request", fmt.Sprintf("a request that names no max_tokens costs at least %v, which is above the %s: it is always denied", cost, p.numbers.mostIs), "set default_max_completion")
			break
		}
	}
	return k
}
