// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"time"
)

// An Override is an exception from a policy, as in policy files and in the body of PUT /v1/overrides.
type Override struct {
	ID     string `json:"id"`
	Action string `json:"action"`

	Rules []string        `json:"rules,omitempty"`
	Match json.RawMessage `json:"match,omitempty"`
	Key   string          `json:"key,omitempty"` // alternative to Match

	// The limit that replaces the rule's limit, as in a rule.
	Algorithm string          `json:"algorithm,omitempty"`
	Config    json.RawMessage `json:"algorithm_config,omitempty"`
	Limits    json.RawMessage `json:"limits,omitempty"`

	Reason    string    `json:"reason"`
	Author    string    `json:"author"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at"`
}

// An OverrideStatus is an override with its state. It is the response of PUT /v1/overrides.
type OverrideStatus struct {
	Override
	State  string `json:"state"`  // in_force, expired or unfit
	Source string `json:"source"` // file or admin

	// About states how the override matches the key in the request: "key" for the key alone, "match" together
	// with others, or "all". JSON omits it if the request has no key.
	About string `json:"about,omitempty"`

	// The reasons why the override does not fit the active policy.
	Mistakes []ErrorDetail `json:"mistakes,omitempty"`
}

// Overrides is the response of GET /v1/overrides.
type Overrides struct {
	// Persistent reports that the overrides outlive the process.
	Persistent bool `json:"persistent"`

	// Overrides lists the overrides of the policy file, then those created at run time.
	Overrides []OverrideStatus `json:"overrides"`

	// Audit lists the last changes, newest last.
	Audit []AuditEntry `json:"audit"`
}

// An AuditEntry is a change to an override or a bucket by an administrator.
type AuditEntry struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	What     string    `json:"what"`     // made, removed, expired, reset, taken or cleared
	Override string    `json:"override"` // its ID; empty for a bucket
	Author   string    `json:"author"`   // the token's name; mete itself for an expiry
	Reason   string    `json:"reason"`   // may be empty for a bucket

	// Set for a change to a bucket: its key, the tokens that were added or taken, and the author's role and
	// address. Unknown values are empty.
	Key    string `json:"key,omitempty"`
	Tokens Amount `json:"tokens,omitempty"`
	Role   string `json:"role,omitempty"`
	From   string `json:"from,omitempty"`

	// Set if a rule was reset: its name and the number of buckets.
	Rule    string `json:"rule,omitempty"`
	Buckets int64  `json:"buckets,omitempty"`

	// Before and After are the override before and after the change, or nil.
	Before *Override `json:"before,omitempty"`
	After  *Override `json:"after,omitempty"`
}

// An Activity is a change by an administrator.
type Activity struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // as in the log: "reset", "overrides PUT", "bucket/take"
	By   string    `json:"by"`   // name of the token, if any
	Role string    `json:"role"`
	From string    `json:"from"` // an IPv4 address or an IPv6 network

	// Status is the status of the response. From 400 on, nothing was changed, except that a 503 can mean that the
	// store made the change but did not respond.
	Status int `json:"status"`

	// Key is the key of the changed bucket, if any. Reason is the reason given; it may be empty.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Rule is the rule that was reset. Empty for other changes.
	Rule string `json:"rule,omitempty"`
}

// Activities is the response of GET /v1/activity.
type Activities struct {
	// Masked reports that the caller's role may not see keys.
	Masked   bool       `json:"masked"`
	Activity []Activity `json:"activity"` // newest first
}

// Reload is the response of POST /v1/reload: the active policy.
type Reload struct {
	PolicyVersion int64 `json:"policy_version"`
	Rules         int   `json:"rules"`
}
