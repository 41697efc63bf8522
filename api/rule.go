// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Rules is the response of GET /v1/rules: the active policy, or one rule of it.
type Rules struct {
	Version         int64          `json:"version"` // bundle_version, or 0
	Expires         *time.Time     `json:"expires"` // null for never
	Rules           int            `json:"rules"`   // number of rules in the policy
	Scopes          []RuleScope    `json:"policies"`
	GlobalOverrides []RuleOverride `json:"overrides"` // overrides that do not belong to a single rule
	Warnings        []RuleWarning  `json:"warnings"`

	// Attributes lists the request attributes that rules read.
	Attributes []RuleAttribute `json:"attributes"`
}

// A RuleAttribute is an attribute that rules read.
type RuleAttribute struct {
	Name   string `json:"name"`
	Secret bool   `json:"secret"` // its value may be a credential
}

// A RuleScope is one policy of a bundle, or the whole policy.
type RuleScope struct {
	ID       string       `json:"id"`       // may be empty
	Selector []RuleClause `json:"selector"` // conditions of this policy; empty matches all requests
	Groups   []RuleGroup  `json:"groups"`
}

// A RuleGroup is a list of rules. The first rule that matches applies.
type RuleGroup struct {
	Name  string `json:"name"` // group name; empty for rules grouped by their limit_keys
	Rules []Rule `json:"rules"`
}

// A Rule is one rule of the policy, with the member names of policy files.
type Rule struct {
	Name         string         `json:"name"`
	Place        int            `json:"place"` // position in the policy, from 1
	Description  string         `json:"description"`
	Mode         string         `json:"mode"`
	Fallback     bool           `json:"fallback"`
	LimitKeys    []string       `json:"limit_keys"`
	Match        [][]RuleClause `json:"match"` // alternatives; empty for all requests
	OnMissing    string         `json:"on_missing"`
	OnStoreError string         `json:"on_store_error"`
	Deadline     Seconds        `json:"deadline"`
	Headers      string         `json:"headers"` // empty: the adapter's setting
	Jitter       string         `json:"jitter"`  // empty: the adapter's setting
	SlotBy       string         `json:"slot_by"`
	Facts        []Fact         `json:"facts"` // effect of the fields, in words
	Limits       []RuleLimit    `json:"limits"`
	Overrides    []RuleOverride `json:"overrides"`

	// Example is a request that matches this rule and no earlier rule of its group. Null if none is known, or if
	// it would reveal a credential.
	Example map[string]string `json:"example"`
}

// A RuleClause is a condition on one attribute.
type RuleClause struct {
	Attribute string `json:"attribute"`
	Wants     string `json:"wants"` // the condition in words
}

// A RuleLimit is one limit of a rule.
type RuleLimit struct {
	Name      string  `json:"name"`
	Algorithm string  `json:"algorithm"` // as in [ExplainedLimit]
	Words     string  `json:"words"`
	Capacity  Amount  `json:"capacity"`
	Rate      string  `json:"rate"`   // such as "10/s"
	Refill    string  `json:"refill"` // as in [Bucket]
	Anchor    string  `json:"anchor"`
	Start     Seconds `json:"start"`
	Queue     Amount  `json:"queue"`

	// MaxReserved bounds the debt from reservations. Null if unbounded.
	MaxReserved *Amount `json:"max_reserved"`

	FullAfter Seconds     `json:"full_after"` // time until an empty bucket is full
	Cost      RuleCost    `json:"cost"`
	Stages    []RuleStage `json:"stages"`
	Shards    int         `json:"shards"` // 0 for one bucket
	Leased    bool        `json:"leased"`
	Facts     []Fact      `json:"facts"` // numbers, in words
}

// A RuleCost is the cost of a request. Min and Max are null if unbounded.
type RuleCost struct {
	Source  string  `json:"source"` // attribute with the cost; empty for a fixed cost
	Default Amount  `json:"default"`
	Min     *Amount `json:"min"`
	Max     *Amount `json:"max"`
}

// A RuleStage is a warning threshold below the limit.
type RuleStage struct {
	At    string  `json:"at"`    // such as "80%"
	Delay Seconds `json:"delay"` // 0 for a warning only
}

// A RuleOverride is an override in [Rules].
type RuleOverride struct {
	ID      string    `json:"id"`
	Action  string    `json:"action"`
	About   string    `json:"about"` // requests that it matches; may be masked for the caller's role
	Reason  string    `json:"reason"`
	Author  string    `json:"author"`
	Expires time.Time `json:"expires"`
}

// A RuleWarning is a lint warning: a valid part of the policy that is probably wrong.
type RuleWarning struct {
	Code   string `json:"code"`
	Rule   string `json:"rule"` // empty if it concerns no rule
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Hint   string `json:"hint"`
	Note   bool   `json:"note"` // informational; no change is needed
}

// A RequestText is the body of POST /v1/request.
type RequestText struct {
	Text string `json:"text"` // a curl command, HTTP request text, or attributes
}

// A ParsedRequest is the response of POST /v1/request: a request for POST /v1/explain.
type ParsedRequest struct {
	Attributes map[string]string `json:"attributes"`
	Cost       Amount            `json:"cost,omitempty"`

	Secrets []string `json:"secrets"` // attributes that may contain credentials
	Unread  []string `json:"unread"`  // attributes that no rule reads; they are omitted
	Notes   []string `json:"notes"`
}
