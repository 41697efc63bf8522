// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// An Explanation is the response of POST /v1/explain.
type Explanation struct {
	// At is the time of the explanation by the limiter's clock.
	At time.Time `json:"at"`

	// PolicyVersion is the bundle_version of the policy, or 0.
	PolicyVersion int64 `json:"policy_version"`

	// PriceVersion and PriceDate describe the prices of the policy. JSON omits empty ones.
	PriceVersion string `json:"price_version,omitempty"`
	PriceDate    string `json:"price_date,omitempty"`

	// Why explains the decision in a sentence.
	Why string `json:"why"`

	// Decision is the decision that a take would get now. PassesAt is the time at which the request passes if no
	// other request takes tokens: At or RetryAfter later, or null if no wait helps.
	Decision Decision   `json:"decision"`
	PassesAt *time.Time `json:"passes_at"`

	// Override blocks or allows the request regardless of the rules. ShadowedBy puts all rules in shadow mode.
	// Null if there is none.
	Override   *Override `json:"override"`
	ShadowedBy *Override `json:"shadowed_by"`

	// Rules are all rules that the limiter considered, in policy order.
	Rules []ExplainedRule `json:"rules"`
}

// An ExplainedRule is one rule in an [Explanation].
type ExplainedRule struct {
	Name      string   `json:"name"`
	Mode      string   `json:"mode"`       // as in policy files: "enforce", "25%"
	LimitKeys []string `json:"limit_keys"` // as in policy files

	// Outcome is a keyword. Why explains it in a sentence.
	Outcome string `json:"outcome"`
	Why     string `json:"why"`

	// Shadow reports that the rule applies but denies nothing for this request.
	Shadow bool `json:"shadow"`

	// Attribute is the attribute that made the rule deny or not apply. Has is its value in the request. Wants
	// describes the value that the rule matches. JSON omits empty ones.
	Attribute string  `json:"attribute,omitempty"`
	Has       *string `json:"has,omitempty"`
	Condition string  `json:"wants,omitempty"`

	// By is the rule that applied instead of this rule. JSON omits it if there is none.
	By string `json:"by,omitempty"`

	// Override is the override of the rule for this request. JSON omits it if there is none.
	Override *Override `json:"override,omitempty"`

	// Facts are the settings of the rule and its limits that differ from the defaults, in words. JSON omits an
	// empty list.
	Facts []Fact `json:"facts,omitempty"`

	// Limits are the rule's limits for the request.
	Limits []ExplainedLimit `json:"limits"`
}

// A Fact describes one property of a rule or limit in words.
type Fact struct {
	Field   string `json:"field"` // policy file field; empty if several fields determine the value
	Label   string `json:"label"`
	Value   string `json:"value"`
	Notable bool   `json:"notable"` // not a default, and not in the description of the limit
}

// An ExplainedLimit is one limit in an [Explanation].
type ExplainedLimit struct {
	Name      string `json:"name"`
	Key       string `json:"key"`              // the bucket's key: ~ starts a hash, and ~… replaces a hash that the role read may not see
	Masked    bool   `json:"masked,omitempty"` // no bucket has this key: it lacks a hash
	Algorithm string `json:"algorithm"`        // as in policy files
	Cost      Amount `json:"cost"`
	Capacity  Amount `json:"capacity"` // includes the queue of a leaky bucket

	// Asked reports that the limiter checked the bucket. If false, the members below are empty.
	Asked bool `json:"asked"`

	// Allowed is the decision of this bucket alone. Before and After are its content before and after the
	// request. They are equal for a denial.
	Allowed bool   `json:"allowed"`
	Before  *Level `json:"before,omitempty"`
	After   *Level `json:"after,omitempty"`

	RetryAfter Seconds    `json:"retry_after"`
	PassesAt   *time.Time `json:"passes_at"`  // as in the Explanation
	FullAfter  Seconds    `json:"full_after"` // time until the bucket is full after the request

	// Penalty is the running penalty of the key, or nil. JSON omits nil.
	Penalty *Penalty `json:"penalty,omitempty"`

	// Stage is the threshold of staged_actions that the request reaches, such as "80%". Delay is its delay. JSON
	// omits them if there is none.
	Stage string  `json:"stage,omitempty"`
	Delay Seconds `json:"delay,omitempty"`
}
