// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/metehq/mete/bucket"

// A ModelCall is a finished request to a language model.
type ModelCall struct {
	// Model is the model that the client named. It can be any text.
	Model string

	// Usage is the tokens that the limits were charged, or nil if they are unknown and the request keeps its
	// reservation.
	Usage *TokenUsage

	// Reported reports whether Usage is from the provider. Otherwise it is an estimate of the streamed text.
	Reported bool

	// Cut is how a limit ended the stream. StreamContinue means that none did.
	Cut StreamLimit
}

// String returns the name of s in policy files, such as "graceful_close".
func (s StreamLimit) String() string {
	if int(s) < len(streamWords) {
		return streamWords[s]
	}
	return "unknown"
}

// Price returns the money that a request to a model costs, and false unless l counts money.
func (l *Limit) Price(model string, u *TokenUsage) (money bucket.Tokens, ok bool) {
	if !l.Money() {
		return 0, false
	}
	return l.cost.ai.prices.find(model).cost(u), true
}

// PriceUnit returns the unit of the prices under l, such as "US cent". It is empty unless the policy names one.
func (l *Limit) PriceUnit() string {
	if !l.Money() {
		return ""
	}
	return l.cost.ai.prices.unit
}
