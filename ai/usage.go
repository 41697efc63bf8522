// SPDX-License-Identifier: Apache-2.0

package ai

import "fmt"

const (
	// MaxTokens bounds every number of tokens that a request names. A higher number is an [Error].
	MaxTokens = 1_000_000_000

	// MaxUsage bounds the tokens that a response reports, all classes together. A higher usage is an [Error], so that a broken
	// server does not spend the budgets of its clients for months. It is twice the largest context window on the market:
	// 10 million tokens of Llama 4 Scout. Prompt and answer share this window. 128 answers of 128,000 tokens are below the bound, too.
	MaxUsage = 20_000_000
)

// A Usage is the number of tokens that a request used, by class. The classes are disjoint. A sum can be multiplied by a
// price per class.
type Usage struct {
	Input      int64 // of the prompt, neither read from a cache nor written to it
	Cached     int64 // of the prompt, read from the provider's cache
	CacheWrite int64 // of the prompt, written to the provider's cache
	Output     int64 // of the answer, without reasoning
	Reasoning  int64 // of the model's thoughts
}

// Total returns the sum of all classes.
func (u Usage) Total() int64 { return u.Prompt() + u.Completion() }

// Prompt returns the tokens of the prompt, cached or not.
func (u Usage) Prompt() int64 { return u.Input + u.Cached + u.CacheWrite }

// Completion returns the tokens that the model produced.
func (u Usage) Completion() int64 { return u.Output + u.Reasoning }

// reported has the numbers of a provider. Bits are the seen and the invalid ones.
type reported struct {
	number               [numbers]int64
	seen, invalid, twice uint32
}

// overlay replaces the numbers that a later event reports.
func (r *reported) overlay(later *reported) {
	for f := range numbers {
		if later.seen&(1<<f) != 0 {
			r.number[f] = later.number[f]
		}
	}
	r.seen |= later.seen
	r.invalid = r.invalid&^later.seen | later.invalid
}

// add adds the numbers of another answer.
func (r *reported) add(other *reported) {
	for f := range numbers {
		if other.seen&(1<<f) != 0 {
			r.number[f] = min(r.number[f]+other.number[f], MaxUsage+1)
		}
	}
	r.seen |= other.seen
	r.invalid |= other.invalid
}

// usageFields are the bits of the numbers of a usage.
const usageFields = 1<<(fRoundOutput+1) - 1<<fInput

// usage returns the classes. Providers disagree about the parts of a total, even within one format. A part that is
// larger than its total, or without which the sum of all is too small, is apart from that total. The result is the
// higher usage, never the lower.
func (r *reported) usage(f Format) (Usage, error) {
	for n := fInput; n <= fRoundOutput; n++ {
		if r.invalid&(1<<n) != 0 {
			return Usage{}, &Error{InvalidUsage, fmt.Sprintf("%s response: %s must be an integer from 0 to %d", f, numberNames[n], MaxUsage)}
		}
	}
	n := &r.number
	u := Usage{n[fInput], n[fCached], n[fWritten], n[fOutput], n[fReasoning]}
	switch f {
	case OpenAIChat, OpenAICompletions, OpenAIResponses:
		u = r.splitOpenAI(u)
	case Anthropic:
		// The top level leaves out the rounds of compactions and advisors, which are paid, too.
		u.Input, u.Cached = max(u.Input, n[fRoundInput]), max(u.Cached, n[fRoundCached])
		u.CacheWrite, u.Output = max(u.CacheWrite, n[fRoundWritten]), max(u.Output, n[fRoundOutput])
		u.Output = max(0, u.Output-u.Reasoning)
	case Gemini:
		u.Input = max(0, u.Input-u.Cached) + n[fToolUse]
	}
	// The total can contain tokens of no class: OpenAI-compatible servers leave out thoughts.
	u.Reasoning += max(0, n[fTotal]-u.Total())
	if u.Total() > MaxUsage {
		return Usage{}, &Error{InvalidUsage, fmt.Sprintf("%s response: all classes together must be at most %d tokens", f, MaxUsage)}
	}
	return u, nil
}

func (r *reported) splitOpenAI(u Usage) Usage {
	n := &r.number
	if cache := u.Cached + u.CacheWrite; cache <= u.Input {
		u.Input -= cache
	}
	apart := u.Reasoning > u.Output || u.Reasoning > 0 && n[fTotal] == n[fInput]+n[fOutput]+u.Reasoning
	if !apart {
		u.Output -= u.Reasoning
	}
	return u
}
