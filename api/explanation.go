// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// An Explanation is the answer to POST /v1/explain.
type Explanation struct {
	// At is the time of the explanation, by the limiter's clock.
	At time.Time `json:"at"`

	// PolicyVersion is the bundle_version of the policy, 0 if it has none.
	PolicyVersion int64 `json:"policy_version"`

	// Why is the outcome of the request in a sentence.
	Why string `json:"why"`

	// Decision is the answer that a take would get now. PassesAt is the time at which the
	// request passes if no other request takes tokens: At, or RetryAfter later, and null if no wait
	// helps.
	Decision Decision   `json:"decision"`
	PassesAt *time.Time `json:"passes_at"`

	// Override blocks or allows the request, whatever the rules say. ShadowedBy makes all
	// rules deny nothing. Null for none.
	Override   *Override `json:"override"`
	ShadowedBy *Override `json:"shadowed_by"`

	// Rules are all rules that the limiter considered, in the order of the policy.
	Rules []ExplainedRule `json:"rules"`
}

// An ExplainedRule is one rule's part in an [Explanation].
type ExplainedRule struct {
	Name      string   `json:"name"`
	Mode      string   `json:"mode"`       // as in policy files: "enforce", "25%"
	LimitKeys []string `json:"limit_keys"` // as in policy files

	// Outcome is a word, and Why the same in a sentence.
	Outcome string `json:"outcome"`
	Why     string `json:"why"`

	// Shadow says that a rule that applies denies nothing, for this request.
	Shadow bool `json:"shadow"`

	// Attribute is the one for which the rule did not apply, or denied. Has is its value in
	// the request, and Wants the value in words that the rule's match wants. JSON leaves out
	// empty ones.
	Attribute string  `json:"attribute,omitempty"`
	Has       *string `json:"has,omitempty"`
	Wants     string  `json:"wants,omitempty"`

	// By is the rule that applied in place of this rule. JSON leaves it out if there is none.
	By string `json:"by,omitempty"`

	// Override is the exception from the rule for this request. JSON leaves it out if there is
	// none.
	Override *Override `json:"override,omitempty"`

	// Facts are the fields of the rule and its limits that differ from the defaults, in
	// words. JSON leaves them out if there are none.
	Facts []Fact `json:"facts,omitempty"`

	// Limits are the rule's limits for the request.
	Limits []ExplainedLimit `json:"limits"`
}

// A Fact is one line about a rule or a limit in words for people.
type Fact struct {
	Field   string `json:"field"` // of policy files; empty if the line follows from several
	Label   string `json:"label"`
	Value   string `json:"value"`
	Notable bool   `json:"notable"` // neither a default nor in the words of the limit
}

// An ExplainedLimit is one limit's part in an [Explanation].
type ExplainedLimit struct {
	Name      string `json:"name"`
	Key       string `json:"key"`              // of the bucket: ~ begins a hash, and ~… replaces a hash that the role read may not see
	Masked    bool   `json:"masked,omitempty"` // no bucket has this key: it lacks a hash
	Algorithm string `json:"algorithm"`        // as in policy files
	Cost      Amount `json:"cost"`
	Capacity  Amount `json:"capacity"` // with the queue of a leaky bucket

	// Asked says that the limiter asked the bucket. If it did not, nothing follows.
	Asked bool `json:"asked"`

	// Allowed is the decision of this bucket alone. Before is its content now, and After its
	// content after the request. They are equal if the request is denied.
	Allowed bool   `json:"allowed"`
	Before  *Level `json:"before,omitempty"`
	After   *Level `json:"after,omitempty"`

	RetryAfter Seconds    `json:"retry_after"`
	PassesAt   *time.Time `json:"passes_at"`  // as in the Explanation
	FullAfter  Seconds    `json:"full_after"` // until the bucket is full, after the request

	// Stage is the threshold of staged_actions that the request reaches, such as "80%", and
	// Delay the delay by it. JSON leaves them out if there is none.
	Stage string  `json:"stage,omitempty"`
	Delay Seconds `json:"delay,omitempty"`
}
