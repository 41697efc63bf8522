// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"time"
)

const (
	// MaxOverrides bounds the active overrides of a policy, including the overrides of its file.
	MaxOverrides = 1000

	maxReasonBytes = 256 // of an override
	maxAuthorBytes = 128 // of an override
)

// An Override is an exception from the rules of a policy, until it expires. It comes from the overrides of a policy
// file, or is added while the policy is active. Its JSON form is the form of policy files. It is a value; the
// caller must not modify the data that it refers to. [Matcher.WithOverrides] validates it.
type Override struct {
	ID     string `json:"id"` // unique; same characters as the name of a rule
	Action Action `json:"action"`

	// Rules are the names of rules, for ActionAllow and ActionLimit. Without names, ActionAllow applies to all
	// rules. ActionLimit needs exactly one.
	Rules []string `json:"rules,omitempty"`

	// Match selects requests, like the match of a rule. ActionBlock and ActionAllow need either Match or Key. For
	// ActionLimit, Match may contain only attributes of the rule's limit_keys, so that a bucket has one limit at a
	// time. It may be absent for a rule without limit_keys. ActionShadow without Match applies to all requests.
	// ActionBreakGlass has no Match.
	Match json.RawMessage `json:"match,omitempty"`

	// Key replaces Match. It is the key of a bucket, as in a decision's explanation and in the violation log. The
	// override applies to all requests that would spend from that bucket, under every limit of the rule.
	Key string `json:"key,omitempty"`

	// The limits of ActionLimit, in the form of a rule. Limits of the rule that it does not list stay. Shards,
	// leases and omitted costs are the rule's.
	Algorithm string          `json:"algorithm,omitempty"`
	Config    json.RawMessage `json:"algorithm_config,omitempty"`
	Limits    json.RawMessage `json:"limits,omitempty"`

	Reason    string    `json:"reason"`              // required
	Author    string    `json:"author"`              // required except in kill_switches
	CreatedAt time.Time `json:"created_at,omitzero"` // not checked
	ExpiresAt time.Time `json:"expires_at"`          // required; the override has no effect from then on
}
