// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"time"

	"github.com/metehq/mete/policy"
)

// An Explanation is the answer to /v1/explain, as JSON carries it. [Explain] makes
// one.
type Explanation struct {
	// At is when that holds, by the limiter's clock.
	At time.Time `json:"at"`

	// PolicyVersion is the bundle_version of the policy, 0 where it has none.
	PolicyVersion int64 `json:"policy_version"`

	// Why says in a sentence what becomes of the request.
	Why string `json:"why"`

	// Decision is what a take would be answered now. PassesAt is when the request
	// passes if nobody else takes: At, or RetryAfter later, and null where no wait
	// helps.
	Decision Decision   `json:"decision"`
	PassesAt *time.Time `json:"passes_at"`

	// Override is what blocks the request, or lets it through, whatever the rules say,
	// and ShadowedBy that by which no rule denies anything; null for none.
	Override   *policy.Override `json:"override"`
	ShadowedBy *policy.Override `json:"shadowed_by"`

	// Rules are all rules that were considered, in the order of the policy.
	Rules []ExplainedRule `json:"rules"`
}

// An ExplainedRule is what became of one rule in an [Explanation].
type ExplainedRule struct {
	Name      string   `json:"name"`
	Mode      string   `json:"mode"`       // as in policy files: "enforce", "25%"
	LimitKeys []string `json:"limit_keys"` // as in policy files

	// Outcome is a word of [policy.Outcome], and Why says the same in a sentence.
	Outcome string `json:"outcome"`
	Why     string `json:"why"`

	// Shadow says of a rule that applies that it denies nothing, for this request.
	Shadow bool `json:"shadow"`

	// Attribute is the one for which the rule did not apply, or denied; empty for
	// none. Has is what the request says of it, null for nothing, and Wants in words
	// what the rule's match wants.
	Attribute string  `json:"attribute,omitempty"`
	Has       *string `json:"has,omitempty"`
	Wants     string  `json:"wants,omitempty"`

	// By is the rule that applied in the place of this one.
	By string `json:"by,omitempty"`

	// Override is the exception from the rule that the request falls under; null for
	// none.
	Override *policy.Override `json:"override,omitempty"`

	// Facts are the fields of the rule and its limits that differ from the defaults, in
	// words. JSON leaves them out if there are none.
	Facts []Fact `json:"facts,omitempty"`

	// Limits are those that the request falls under.
	Limits []ExplainedLimit `json:"limits"`
}

// A Fact is one field of a rule or a limit in words for people.
type Fact struct {
	Field string `json:"field"` // as in policy files
	Label string `json:"label"`
	Value string `json:"value"`
}

// An ExplainedLimit is one limit's part in an [Explanation]. Amounts are in tokens,
// exact to a thousandth.
type ExplainedLimit struct {
	Name      string      `json:"name"`
	Key       string      `json:"key"`       // of the bucket: ~ stands for a hash of what is secret or long, ~… for one that the role read may not see
	Algorithm string      `json:"algorithm"` // as in policy files
	Cost      json.Number `json:"cost"`
	Capacity  json.Number `json:"capacity"` // with what can wait in its queue

	// Asked says whether the bucket had a say. Where it had none, nothing follows.
	Asked bool `json:"asked"`

	// Allowed is what this bucket alone says. Before is what it holds now, and After
	// what it would hold: the same, where the request is denied.
	Allowed bool   `json:"allowed"`
	Before  *Level `json:"before,omitempty"`
	After   *Level `json:"after,omitempty"`

	RetryAfter Seconds    `json:"retry_after"`
	PassesAt   *time.Time `json:"passes_at"`  // as in the Explanation
	FullAfter  Seconds    `json:"full_after"` // until the bucket is full, after the request

	// Stage is the threshold of staged_actions that the request reaches, such as
	// "80%", and Delay how long that makes it wait. JSON leaves them out where there
	// is none.
	Stage string  `json:"stage,omitempty"`
	Delay Seconds `json:"delay,omitempty"`
}

// A Level is how full a bucket is.
type Level struct {
	Remaining json.Number `json:"remaining"` // what would still be admitted

	// Owed is how much more than its capacity has been spent. JSON leaves it out where
	// nothing is owed.
	Owed json.Number `json:"owed,omitempty"`
}
