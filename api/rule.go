// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Rules are the answer to GET /v1/rules: the active policy, or one rule of it.
type Rules struct {
	Version int64          `json:"version"` // its bundle_version, 0 for none
	Expires *time.Time     `json:"expires"` // null for never
	Rules   int            `json:"rules"`   // their number in the policy
	Scopes  []RuleScope    `json:"policies"`
	General []RuleOverride `json:"overrides"` // of no single rule
	Warned  []RuleWarning  `json:"warnings"`

	// Attributes are the attributes of requests that rules read.
	Attributes []RuleAttribute `json:"attributes"`
}

// A RuleAttribute is an attribute that rules read.
type RuleAttribute struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret"` // its value may be a credential
}

// A RuleScope is one policy of a bundle, or the whole policy.
type RuleScope struct {
	ID       string       `json:"id"`       // empty for none
	Selector []RuleClause `json:"selector"` // the requests of this policy; all if empty
	Groups   []RuleGroup  `json:"groups"`
}

// A RuleGroup is a list of rules. The first one that matches applies.
type RuleGroup struct {
	Name  string `json:"name"` // of the file; empty for rules with the same limit_keys
	Rules []Rule `json:"rules"`
}

// A Rule is one rule of the policy. Its members are named as in policy files.
type Rule struct {
	Name         string         `json:"name"`
	Place        int            `json:"place"` // in the policy, from 1
	Description  string         `json:"description"`
	Mode         string         `json:"mode"`
	Fallback     bool           `json:"fallback"`
	LimitKeys    []string       `json:"limit_keys"`
	Match        []RuleClause   `json:"match"`
	OnMissing    string         `json:"on_missing"`
	OnStoreError string         `json:"on_store_error"`
	Deadline     Seconds        `json:"deadline"`
	Headers      string         `json:"headers"` // empty: as the front door is configured
	Jitter       string         `json:"jitter"`  // empty: as the front door is configured
	SlotBy       string         `json:"slot_by"`
	Facts        []Fact         `json:"facts"` // the effect of its fields, in words
	Limits       []RuleLimit    `json:"limits"`
	Overrides    []RuleOverride `json:"overrides"`

	// Example is a request that matches the rule and no earlier one of its group. It is null
	// if none is known, or if it would show a credential.
	Example map[string]string `json:"example"`
}

// A RuleClause is a condition on one attribute.
type RuleClause struct {
	Attribute string `json:"attribute"`
	Wants     string `json:"wants"` // in words
}

// A RuleLimit is one limit of a rule.
type RuleLimit struct {
	Name      string  `json:"name"`
	Algorithm string  `json:"algorithm"` // as in [ExplainedLimit]
	Words     string  `json:"words"`
	Capacity  Amount  `json:"capacity"`
	Rate      string  `json:"rate"`   // as in "10/s"
	Refill    string  `json:"refill"` // as in [Bucket]
	Anchor    string  `json:"anchor"`
	Start     Seconds `json:"start"`
	Queue     Amount  `json:"queue"`

	// MaxReserved bounds the debt of reservations; null if the policy sets no bound.
	MaxReserved *Amount `json:"max_reserved"`

	FullAfter Seconds     `json:"full_after"` // the time until an empty bucket is full
	Cost      RuleCost    `json:"cost"`
	Stages    []RuleStage `json:"stages"`
	Shards    int         `json:"shards"` // 0 for one bucket
	Leased    bool        `json:"leased"`
	Facts     []Fact      `json:"facts"` // its numbers, in words
}

// A RuleCost is the cost of a request. Min and Max are null if there is no such bound.
type RuleCost struct {
	Source  string  `json:"source"` // the attribute with the cost; empty for a fixed one
	Default Amount  `json:"default"`
	Min     *Amount `json:"min"`
	Max     *Amount `json:"max"`
}

// A RuleStage is a threshold before a limit is used up.
type RuleStage struct {
	At    string  `json:"at"`    // as in "80%"
	Delay Seconds `json:"delay"` // 0 for a warning only
}

// A RuleOverride is an override in [Rules].
type RuleOverride struct {
	ID      string    `json:"id"`
	Action  string    `json:"action"`
	About   string    `json:"about"` // its requests, as far as the caller's role shows them
	Reason  string    `json:"reason"`
	Author  string    `json:"author"`
	Expires time.Time `json:"expires"`
}

// A RuleWarning is a part of the policy that is valid and probably a mistake.
type RuleWarning struct {
	Code   string `json:"code"`
	Rule   string `json:"rule"` // empty if it is about no rule
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
	Note   bool   `json:"note"` // no reason to change anything
}

// A RequestText is the body of POST /v1/request.
type RequestText struct {
	Text string `json:"text"` // a curl command, the text of a request, or attributes
}

// A ParsedRequest is the answer to POST /v1/request: a request for POST /v1/explain.
type ParsedRequest struct {
	Attributes map[string]string `json:"attributes"`
	Cost       Amount            `json:"cost,omitempty"`

	Secrets []string `json:"secrets"` // attributes with values that may be credentials
	Unread  []string `json:"unread"`  // attributes that no rule reads, which are left out
	Notes   []string `json:"notes"`
}
