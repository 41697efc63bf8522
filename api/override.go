// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"time"
)

// An Override is an exception from a policy, as policy files and the body of PUT
// /v1/overrides have it.
type Override struct {
	ID     string `json:"id"`
	Action string `json:"action"`

	Rules []string        `json:"rules,omitempty"`
	Match json.RawMessage `json:"match,omitempty"`
	Key   string          `json:"key,omitempty"` // in place of Match

	// The limit that replaces the rule's, as in a rule.
	Algorithm string          `json:"algorithm,omitempty"`
	Config    json.RawMessage `json:"algorithm_config,omitempty"`
	Limits    json.RawMessage `json:"limits,omitempty"`

	Reason    string    `json:"reason"`
	Author    string    `json:"author"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at"`
}

// An OverrideStatus is an override and its state. It is the answer to PUT /v1/overrides.
type OverrideStatus struct {
	Override
	State  string `json:"state"`  // in_force, expired or unfit
	Source string `json:"source"` // file or admin

	// About is how the override takes the key that the caller asked about: "key" alone, by a
	// "match" with others, or with "all". JSON leaves it out if the caller named no key.
	About string `json:"about,omitempty"`

	// Mistakes are the reasons why the override does not fit the active policy.
	Mistakes []Mistake `json:"mistakes,omitempty"`
}

// Overrides is the answer to GET /v1/overrides.
type Overrides struct {
	// Persistent says that the overrides outlive the process.
	Persistent bool `json:"persistent"`

	// Overrides are those of the policy file, and then those made at run time.
	Overrides []OverrideStatus `json:"overrides"`

	// Audit has the last actions, the newest last.
	Audit []AuditEntry `json:"audit"`
}

// An AuditEntry is an action that an administrator took on an override or on a bucket.
type AuditEntry struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	What     string    `json:"what"`     // made, removed, expired, reset, taken or cleared
	Override string    `json:"override"` // its ID; empty for a bucket
	Author   string    `json:"author"`   // the token's name; mete itself for an expiry
	Reason   string    `json:"reason"`   // may be empty for a bucket

	// Of an action on a bucket: the key, the tokens that a reset gave or that were taken, the
	// author's role and address. Unknown values are empty.
	Key    string `json:"key,omitempty"`
	Tokens Amount `json:"tokens,omitempty"`
	Role   string `json:"role,omitempty"`
	From   string `json:"from,omitempty"`

	// Of a rule whose buckets were cleared: its name, and the number of buckets.
	Rule    string `json:"rule,omitempty"`
	Buckets int64  `json:"buckets,omitempty"`

	// Before and After are the override before and after the action, nil if there was none.
	Before *Override `json:"before,omitempty"`
	After  *Override `json:"after,omitempty"`
}

// An Activity is an action of an administrator that changes something.
type Activity struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // as in the log: "reset", "overrides PUT", "bucket/take"
	By   string    `json:"by"`   // the name of the token; empty if there was none
	Role string    `json:"role"`
	From string    `json:"from"` // an address; of IPv6, its network

	// Status is the status of the answer. From 400 on nothing was done; at 503 the store may
	// have done it without an answer.
	Status int `json:"status"`

	// Key is the bucket's key, empty if the action concerns no single bucket. Reason is the
	// reason that was given; it may be empty.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Rule is the rule whose buckets are all made full. It is empty for other actions.
	Rule string `json:"rule,omitempty"`
}

// Activities is the answer to GET /v1/activity.
type Activities struct {
	// Masked says that the caller's role does not show keys.
	Masked   bool       `json:"masked"`
	Activity []Activity `json:"activity"` // the newest first
}

// Reload is the answer to POST /v1/reload: the active policy.
type Reload struct {
	PolicyVersion int64 `json:"policy_version"`
	Rules         int   `json:"rules"`
}
