// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Ratios learns how many bytes a token has, per model and [Side], from requests with known usage. Without a
// ratio, it estimates like [SimpleWord]. A Ratios is safe for concurrent use. It starts no goroutine.
type Ratios struct {
	most int

	mu     sync.RWMutex // guards the fields below
	ratios map[ratioKey]*ratio
}

// A Side is the part of a request that a ratio is for. Prompts have more tokens per byte of text than answers, because
// providers add the frames of messages and tools.
type Side uint8

// The sides.
const (
	PromptSide Side = iota
	CompletionSide
)

// String returns "prompt" or "completion".
func (s Side) String() string {
	if s == CompletionSide {
		return "completion"
	}
	return "prompt"
}

// A Ratio has the learned numbers of a model.
type Ratio struct {
	Model    string // "" for the models above the maximum, which share a ratio
	Side     Side
	PerByte  float64 // tokens
	Requests int64   // that it was learned from

	// Error is the mean of |estimate − actual| / actual over the last requests, with the estimate before each of them.
	// Bias is the same with the sign: negative if estimates are too low.
	Error, Bias float64
}

// The bounds of a ratio, as parts of the estimate of [SimpleWord]. All clients of a model share its ratio, and each chooses its
// texts. Without a bound, a client that sends spaces, with 100 of them in a token, reserves almost nothing for its next prompts.
//
// Package aitokens measures them with its two vocabularies. Files of code, JSON and prose have 0.6 to 3.7 times as many tokens as
// SimpleWord. The average of a kind of files is 1.0 to 1.5 times. Base64 and hex have 2.3 to 2.9 times. Texts in 13 languages have
// 0.46 to 2.8 times. Hindi has 0.32 times with the newer vocabulary, so that its estimate is 1.6 times too high. The upper bound is
// farther away, because a low estimate can exceed a budget, and a high one only reserves too much.
const (
	leastOfSimple = 0.5
	mostOfSimple  = 3
)

// boundTokens returns a number of tokens that a text can have on the average of many texts.
func boundTokens(tokens float64, t Text) float64 {
	simple := float64(simpleTokens(t))
	return min(max(tokens, simple*leastOfSimple), simple*mostOfSimple)
}

const (
	maxModelBytes = 256
	learnedBytes  = 256 << 10 // the weight of the past: a ratio follows a change after that many bytes
	errorWeight   = 1.0 / 32  // of the last request in the mean error
	relativeMax   = 100       // bounds the error of one request
)

type ratioKey struct {
	model string
	side  Side
}

type ratio struct {
	bytes, tokens float64 // with fading weights
	requests      int64
	err, bias     float64
}

// NewRatios returns a Ratios for at most that many models. Additional models share one ratio.
func NewRatios(models int) (*Ratios, error) {
	if models < 1 {
		return nil, fmt.Errorf("ai: ratios of %d models: must be at least 1", models)
	}
	return &Ratios{most: models * 2, ratios: map[ratioKey]*ratio{}}, nil
}

// Tokens returns an estimate of the tokens of a text.
func (rs *Ratios) Tokens(model string, side Side, t Text) int64 {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	if r := rs.find(model, side); r != nil {
		return r.estimate(t)
	}
	return simpleTokens(t)
}

// Estimate is an [Estimator].
func (rs *Ratios) Estimate(r *Request) int64 {
	return rs.Tokens(r.Model, PromptSide, r.Text) + int64(r.Media)*MediaTokens
}

// Observe learns from a text and the tokens that the provider reported for it. Callers leave out prompts with media. It
// ignores texts without bytes, and numbers outside of 1 to [MaxUsage]. A text counts at least half and at most three times the
// tokens that [SimpleWord] estimates, and so does each later estimate.
func (rs *Ratios) Observe(model string, side Side, t Text, tokens int64) {
	if t.Bytes <= 0 || tokens <= 0 || tokens > MaxUsage {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	estimate := simpleTokens(t)
	if r := rs.find(model, side); r != nil {
		estimate = r.estimate(t)
	}
	r := rs.findOrAdd(model, side)
	r.observeError(float64(tokens), float64(estimate))
	r.learn(float64(t.Bytes), boundTokens(float64(tokens), t))
}

// All returns the ratios, ordered by model and side.
func (rs *Ratios) All() []Ratio {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	all := make([]Ratio, 0, len(rs.ratios))
	for k, r := range rs.ratios {
		all = append(all, Ratio{k.model, k.side, r.perByte(), r.requests, r.err, r.bias})
	}
	slices.SortFunc(all, func(a, b Ratio) int { return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Side, b.Side)) })
	return all
}

// find returns the ratio of a model, or the shared one, or nil.
func (rs *Ratios) find(model string, side Side) *ratio {
	if r := rs.ratios[ratioKey{model, side}]; r != nil {
		return r
	}
	return rs.ratios[ratioKey{"", side}]
}

// findOrAdd returns the ratio of a model, or the shared one at the maximum.
func (rs *Ratios) findOrAdd(model string, side Side) *ratio {
	k := ratioKey{model, side}
	if rs.ratios[k] == nil && (len(rs.ratios) >= rs.most || len(model) > maxModelBytes) {
		k.model = ""
	}
	if rs.ratios[k] == nil {
		rs.ratios[k] = new(ratio)
	}
	return rs.ratios[k]
}

func (r *ratio) perByte() float64 { return r.tokens / r.bytes }

// estimate has the bounds, too: a ratio of English texts would be too low for a Chinese one.
func (r *ratio) estimate(t Text) int64 {
	return int64(math.Ceil(boundTokens(float64(t.Bytes)*r.perByte(), t)))
}

func (r *ratio) observeError(tokens, estimate float64) {
	deviation := min((estimate-tokens)/tokens, relativeMax)
	weight := max(errorWeight, 1/float64(r.requests+1)) // the plain mean of the first requests
	r.err += weight * (math.Abs(deviation) - r.err)
	r.bias += weight * (deviation - r.bias)
	r.requests++
}

func (r *ratio) learn(bytes, tokens float64) {
	// A long text counts as learnedBytes at most, so that it replaces half of the past at most.
	if bytes > learnedBytes {
		tokens, bytes = tokens*learnedBytes/bytes, learnedBytes
	}
	if fade := (r.bytes + bytes) / learnedBytes; fade > 2 {
		r.bytes, r.tokens = r.bytes*2/fade, r.tokens*2/fade
	}
	r.bytes += bytes
	r.tokens += tokens
}
