// SPDX-License-Identifier: Apache-2.0

package policy

// An AlgorithmKind describes an algorithm to programs and people. Web pages use its JSON form
// instead of a separate list of algorithms.
type AlgorithmKind struct {
	Name   string `json:"name"`   // in policy files: "token_bucket"
	Label  string `json:"label"`  // for people: "Token bucket"
	Reason string `json:"reason"` // of a denial

	// Shape determines which numbers a limit has. "rate" has a rate and a capacity, and "queue" adds a queue. "window" and
	// "sliding" have an amount and a window. "budget" has an amount and a period, and "tokens" an amount per minute. "slots"
	// has a number of slots and a lease.
	Shape string `json:"shape"`
}

// Reasons returns the reasons of denials by limits, guards and bounds of one request.
func Reasons() (all []string) {
	for _, a := range algorithms {
		all = append(all, a.reason)
	}
	return append(all, reasonTPD, ReasonPromptTokens, ReasonRequestTokens, ReasonLoop, ReasonBreaker)
}

// Algorithms returns the algorithms of policy files. The first is the default.
func Algorithms() []AlgorithmKind {
	kinds := make([]AlgorithmKind, len(algorithms))
	for i, a := range algorithms {
		kinds[i] = AlgorithmKind{Name: a.name, Label: a.label, Reason: a.reason, Shape: a.shape}
	}
	return kinds
}
