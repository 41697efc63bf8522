// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
)

// A UsageCost computes the cost of a request to a language model under one limit. It stays as it is when the policy changes,
// and [UsageCost.Append] writes it for other processes.
type UsageCost struct {
	weights   weights
	low, high bucket.Tokens
}

// UsageCost returns the cost of a successful request to a model under l, or false unless l counts tokens or money.
func (l *Limit) UsageCost(model string) (cost UsageCost, ok bool) {
	switch {
	case l.cost.ai == nil:
		return UsageCost{}, false
	case l.chargeOn != nil && !l.chargeOn.charges(&Response{Status: http.StatusOK}):
		return UsageCost{weights: weights{per: 1}}, true
	}
	return UsageCost{*l.cost.ai.weightsOf(model), l.cost.min, l.cost.max}, true
}

// Of returns the cost of a usage.
func (c *UsageCost) Of(u *TokenUsage) bucket.Tokens {
	return min(max(c.weights.cost(u), c.low), c.high)
}

// Money reports whether c counts the prices of a model instead of tokens.
func (c *UsageCost) Money() bool { return c.weights.per == millionTokens }

// WithModel returns c with the prices of another model, which a rule of m has. It returns c if c counts no money, or if m
// has no such rule that does.
func (c UsageCost) WithModel(m *Matcher, rule, model string) UsageCost {
	if m == nil || !c.Money() {
		return c
	}
	at := slices.IndexFunc(m.rules, func(r *Rule) bool { return r.Name == rule })
	if at < 0 {
		return c
	}
	for i := range m.rules[at].Limits {
		if l := &m.rules[at].Limits[i]; l.Money() {
			c.weights = *l.cost.ai.prices.find(model)
			break
		}
	}
	return c
}

// Append appends the binary form of c to dst.
func (c *UsageCost) Append(dst []byte) []byte {
	w := &c.weights
	for _, n := range [...]bucket.Tokens{w.input, w.cached, w.write, w.output, w.reasoning, bucket.Tokens(w.per), c.low, bucket.MaxTokens - c.high} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

// ReadUsageCost reads the first binary form of a UsageCost in text, and returns the rest of text. ok is false if it is invalid.
func ReadUsageCost(text []byte) (c UsageCost, rest []byte, ok bool) {
	w, per, most := &c.weights, bucket.Tokens(0), bucket.Tokens(0)
	for _, field := range [...]struct {
		to   *bucket.Tokens
		most bucket.Tokens
	}{
		{&w.input, maxAIWeight}, {&w.cached, maxAIWeight}, {&w.write, maxAIWeight}, {&w.output, maxAIWeight}, {&w.reasoning, maxAIWeight},
		{&per, millionTokens}, {&c.low, bucket.MaxTokens}, {&most, bucket.MaxTokens},
	} {
		n, size := binary.Uvarint(text)
		if size <= 0 || n > uint64(field.most) {
			return UsageCost{}, nil, false
		}
		*field.to, text = bucket.Tokens(n), text[size:]
	}
	w.per, c.high = int64(per), bucket.MaxTokens-most
	return c, text, per == 1 || per == millionTokens
}

// TokenClasses returns the names of the classes of tokens, as weights and prices have them.
func TokenClasses() []string {
	return []string{"input", "cached", "cache_write", "output", "reasoning"}
}

// Set sets the tokens of a class, which are a number in decimal. The error names the value and the remedy.
func (u *TokenUsage) Set(class, tokens string) error {
	at := slices.Index(TokenClasses(), class)
	n, err := strconv.ParseInt(tokens, 10, 64) // the nearest number if it is out of range
	switch {
	case at < 0:
		return fmt.Errorf("usage: unknown class %q: write %s", class, parse.Enumerate(TokenClasses(), "or"))
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("usage: %s is %q: write a whole number of tokens, such as 812", class, tokens)
	case n < 0 || n > maxAITokens:
		return fmt.Errorf("usage: %s is %s: must be between 0 and %d: send the tokens of one request", class, tokens, maxAITokens)
	}
	*u.counts()[at] = n
	return nil
}

// Check returns an error unless all numbers are between 0 and a billion.
func (u TokenUsage) Check() error {
	for i, n := range u.counts() {
		if err := u.Set(TokenClasses()[i], strconv.FormatInt(*n, 10)); err != nil {
			return err
		}
	}
	return nil
}

// counts returns the numbers in the order of TokenClasses.
func (u *TokenUsage) counts() [5]*int64 {
	return [...]*int64{&u.Input, &u.Cached, &u.CacheWrite, &u.Output, &u.Reasoning}
}
