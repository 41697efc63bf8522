// SPDX-License-Identifier: Apache-2.0

package policy

// An AlgorithmKind describes an algorithm to programs and to people. Its JSON form is for
// pages, which have no list of algorithms of their own.
type AlgorithmKind struct {
	Name   string `json:"name"`   // in policy files: "token_bucket"
	Label  string `json:"label"`  // for people: "Token bucket"
	Reason string `json:"reason"` // of a denial

	// Shape tells which numbers make up a limit: "rate" is an amount per time and a capacity,
	// "queue" adds a queue, "window" and "sliding" are an amount and a window, and "budget" is
	// an amount and a period.
	Shape string `json:"shape"`
}

// Algorithms returns the algorithms of policy files. The first is that of a limit which
// names none.
func Algorithms() []AlgorithmKind {
	kinds := make([]AlgorithmKind, len(algorithms))
	for i, a := range algorithms {
		kinds[i] = AlgorithmKind{Name: a.name, Label: a.label, Reason: a.reason, Shape: a.shape}
	}
	return kinds
}
