// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// The cost of requests to language models. A request reserves its estimated prompt and the longest completion that it asks
// for. The response tells the tokens that were used.

const (
	// maxAITokens bounds the tokens of each class in one request. A larger number is no number of tokens.
	maxAITokens = 1_000_000_000

	// maxAIChoices bounds the completions of one request. Providers allow 128.
	maxAIChoices = 1024

	// maxAIWeight bounds weights and prices, so that the cost of maxAITokens fits into 64 bits.
	maxAIWeight = 1_000_000 * bucket.Token

	// defaultCompletion is the completion of a request that asks for no number of tokens.
	defaultCompletion = 1000
)

// A TokenUsage is the number of tokens of one request to a language model, in classes without overlap. Numbers below 0 and
// above a billion count as 0 and a billion.
type TokenUsage struct {
	Input      int64 // of the prompt, apart from the next two
	Cached     int64 // of the prompt, read from the provider's cache
	CacheWrite int64 // of the prompt, written to the cache
	Output     int64 // of the completion, apart from Reasoning
	Reasoning  int64 // of the completion that the client does not see
}

// Total returns the tokens of all classes.
func (u *TokenUsage) Total() int64 { return u.Input + u.Cached + u.CacheWrite + u.Output + u.Reasoning }

// weights are the costs of one token, or of a million tokens, by class.
type weights struct {
	input, cached, write, output, reasoning bucket.Tokens
	per                                     int64
}

var plainWeights = weights{bucket.Token, bucket.Token, bucket.Token, bucket.Token, bucket.Token, 1}

// cost returns the cost of u, rounded up to a thousandth.
func (w *weights) cost(u *TokenUsage) bucket.Tokens {
	sum := uint64(0)
	for _, class := range [...]struct {
		tokens int64
		weight bucket.Tokens
	}{{u.Input, w.input}, {u.Cached, w.cached}, {u.CacheWrite, w.write}, {u.Output, w.output}, {u.Reasoning, w.reasoning}} {
		sum += uint64(min(max(class.tokens, 0), maxAITokens)) * uint64(class.weight)
	}
	per := uint64(w.per)
	return bucket.Tokens(min((sum+per-1)/per, uint64(bucket.MaxTokens)))
}

// An aiCost is the cost of requests to language models under one limit. It is immutable.
type aiCost struct {
	hint, estimate, prompt int // slots of the estimates of the prompt, in the order of preference; hint is -1 without one
	maxTokens, choices     int // slots
	model                  int // slot; -1 unless the limit counts money

	weights weights
	prices  *Prices // by model, instead of weights; nil counts tokens

	defaultCompletion, maxCompletion int64 // maxCompletion is at most maxAITokens
	maxPrompt, maxRequest            int64 // a request above them is denied; at most maxAITokens
	streaming                        Streaming

	modelsOnly bool // a request without ai:prompt_tokens costs as little as possible
}

// estimateAI returns the tokens that the request may use.
func (m *Matcher) estimateAI(s *scratch, k *aiCost) (u TokenUsage) {
	for _, slot := range [...]int{k.hint, k.estimate, k.prompt} {
		if slot < 0 {
			continue
		}
		var ok bool
		if u.Input, ok = m.countOf(s, slot); ok {
			break
		}
	}
	var ok bool
	if u.Output, ok = m.countOf(s, k.maxTokens); !ok {
		choices, _ := m.countOf(s, k.choices)
		u.Output = min(k.defaultCompletion*min(max(choices, 1), maxAIChoices), maxAITokens)
	}
	return u
}

// countOf returns the number of tokens in an attribute. A larger number than maxAITokens counts as that, because a client
// must not escape a bound with it.
func (m *Matcher) countOf(s *scratch, slot int) (int64, bool) {
	f := m.fact(s, slot)
	if !f.present || f.value == "" || strings.Trim(f.value, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(f.value, 10, 64)
	if err != nil {
		n = maxAITokens // it has too many digits
	}
	return min(n, maxAITokens), true
}

// costAI returns the cost that a request reserves under l. A request above a bound of l gets a refusal.
func (m *Matcher) costAI(s *scratch, l *Limit) (cost bucket.Tokens, refusal string) {
	k := l.cost.ai
	if k.modelsOnly && !m.fact(s, k.prompt).present {
		return 1, ""
	}
	u := m.estimateAI(s, k)
	switch {
	case u.Input > k.maxPrompt:
		refusal = ReasonPromptTokens
	case u.Input+u.Output > k.maxRequest:
		refusal = ReasonRequestTokens
	}
	u.Output = min(u.Output, k.maxCompletion)
	model := ""
	if k.model >= 0 {
		model = m.fact(s, k.model).value
	}
	// A cost of 0 would be no charge, which could not be settled.
	return min(max(k.weightsOf(model).cost(&u), l.cost.min, 1), l.cost.max), refusal
}

func (k *aiCost) weightsOf(model string) *weights {
	if k.prices == nil {
		return &k.weights
	}
	return k.prices.find(model)
}

// final returns the cost of a response under a limit, or false if it must keep the cost that it reserved.
func (k *aiCost) final(r *Response, low, high bucket.Tokens) (bucket.Tokens, bool) {
	switch {
	case r.Usage != nil:
		c := UsageCost{*k.weightsOf(r.Model), low, high}
		cost := c.Of(r.Usage)
		if k.prices != nil && !strings.HasPrefix(r.ServedModel, r.Model) {
			if w := k.prices.lookup(r.ServedModel); w != nil {
				served := UsageCost{*w, low, high}
				cost = max(cost, served.Of(r.Usage))
			}
		}
		return cost, true
	case r.Status >= http.StatusBadRequest: // providers charge nothing for it
		return min(low, high), true
	}
	return 0, false
}

// Reasons of denials by the bounds of one request to a language model. Waiting does not help.
const (
	ReasonPromptTokens  = "prompt_tokens_exceeded"
	ReasonRequestTokens = "max_tokens_per_request_exceeded"
)

const (
	sourceTokens = "ai:tokens"
	sourceMoney  = "ai:money"
)

// aiFields are the fields of limits for requests to language models.
var aiFields = []string{"weights", "token_source", "default_max_completion", "max_completion_tokens", "streaming"}

// readAICost reads the cost of requests to language models. money counts the prices of the file instead of tokens. onLimit is
// the default for streams.
func (c *compiler) readAICost(o *parse.Object, money bool, onLimit StreamLimit, k *cost) {
	a := &aiCost{
		hint: -1, model: -1, prompt: c.slotFor(aiAttribute(aiPrompt)), maxTokens: c.slotFor(aiAttribute(aiMaxTokens)), choices: c.slotFor(aiAttribute(aiChoices)), weights: plainWeights,
		defaultCompletion: defaultCompletion, maxCompletion: maxAITokens, maxPrompt: maxAITokens, maxRequest: maxAITokens,
		streaming: Streaming{Every: defaultStreamTokens, OnLimit: onLimit, Partial: true, AskUsage: true},
	}
	a.estimate = a.prompt
	k.ai, k.variable, k.slot = a, true, a.prompt
	if n := o.Field("weights"); n != nil && money {
		c.AddAt(n, "weights have no effect on money", "the prices of the file have a price for each class of tokens")
	} else if n != nil {
		c.readWeights(n, &a.weights)
	}
	if money {
		a.model, a.prices = c.slotFor(aiAttribute(aiModel)), c.prices
		if c.prices == nil && !c.pricesBad {
			c.AddAt(o.Node, "cost_source: "+sourceMoney+" needs the prices of the models", "add prices at the top of the file")
			a.prices = &Prices{}
		}
	}
	if n := o.Field("token_source"); n != nil {
		c.readTokenSource(n, a)
	}
	for _, f := range []struct {
		name string
		to   *int64
	}{
		{"default_max_completion", &a.defaultCompletion}, {"default_max_completion_tokens", &a.defaultCompletion}, {"max_completion_tokens", &a.maxCompletion},
		{"max_prompt_tokens", &a.maxPrompt}, {"max_tokens_per_request", &a.maxRequest},
	} {
		if n := o.Field(f.name); n != nil {
			if v, ok := c.Whole(n, f.name, 1, maxAITokens); ok {
				*f.to = int64(v)
			}
		}
	}
	if n := o.Field("streaming"); n != nil {
		c.readStreaming(n, &a.streaming)
	}
	if a.maxPrompt > a.maxRequest && o.Field("max_prompt_tokens") != nil {
		c.Add(o.Field("max_prompt_tokens"), fmt.Sprintf("max_prompt_tokens is above the max_tokens_per_request of %d", a.maxRequest), "lower it")
	}
}

// readWeights reads the weights of the classes of tokens. Cached and written tokens weigh like other input by default, and
// reasoning like other output.
func (c *compiler) readWeights(n *parse.Node, w *weights) (ok bool) {
	o := c.Object(n, weightsTable)
	if o == nil {
		return false
	}
	ok = true
	read := func(name string, fallback bucket.Tokens) bucket.Tokens {
		f := o.Field(name)
		if f == nil {
			return fallback
		}
		t, good := c.Amount(f, name)
		if good && t > maxAIWeight {
			c.Add(f, fmt.Sprintf("%s must be at most %v", name, maxAIWeight), "")
			good = false
		}
		ok = ok && good
		return t
	}
	if w.per == millionTokens { // no price is a default
		o.Require("input", "the price of a million tokens of prompts")
		o.Require("output", "the price of a million tokens of completions")
		ok = o.Count("input", "output") == 2
	}
	w.input = read("input", w.input)
	w.output = read("output", w.output)
	w.cached, w.write, w.reasoning = read("cached", w.input), read("cache_write", w.input), read("reasoning", w.output)
	if ok && w.input == 0 && w.output == 0 {
		c.AddAt(n, "the weights of input and output are 0, so that requests cost nothing", "set one of them")
		ok = false
	}
	return ok
}

// The estimators of prompts.
var estimators = []string{"simple_word", "header_hint", "tiktoken", "learned"}

// hintHeader is the header in which a client that header_hint trusts names the tokens of its prompt.
const hintHeader = "header:x-token-estimate"

func (c *compiler) readTokenSource(n *parse.Node, a *aiCost) {
	o := c.Object(n, tokenSourceTable)
	if o == nil {
		return
	}
	f := o.Field("estimator")
	if f == nil {
		return
	}
	switch i := c.Choice(f, "estimator", estimators, nil); i {
	case slices.Index(estimators, "header_hint"):
		hint, _ := ParseAttribute(hintHeader)
		a.hint = c.slotFor(hint)
	case slices.Index(estimators, "tiktoken"):
		a.estimate = c.slotFor(aiAttribute(aiTiktoken))
	case slices.Index(estimators, "learned"):
		a.estimate = c.slotFor(aiAttribute(aiLearned))
	}
}

// ReadsAI reports whether a rule depends on the body of requests to language models.
func (m *Matcher) ReadsAI() bool { return m.Uses(SourceAI) }

// AI reports whether the tokens of a language model determine the cost under l.
func (l *Limit) AI() bool { return l.cost.ai != nil }

// Money reports whether the prices of models determine the cost under l.
func (l *Limit) Money() bool { return l.cost.ai != nil && l.cost.ai.prices != nil }

// SharesUnit reports whether an amount means the same under two limits. The amounts of limits for language models differ if they
// count money, or tokens by other weights.
func (l *Limit) SharesUnit(other *Limit) bool {
	a, b := l.cost.ai, other.cost.ai
	if a == nil || b == nil {
		return a == b || l.FixedCost() || other.FixedCost()
	}
	return a.prices == b.prices && (a.prices != nil || a.weights == b.weights)
}
