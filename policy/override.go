// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"time"
)

const (
	// MaxOverrides bounds the overrides in force beside a policy, those of its file
	// included. More are refused.
	MaxOverrides = 1000

	maxReasonBytes = 256 // of an override's reason
	maxAuthorBytes = 128 // and of its author
)

// An Override is an exception from the rules of a policy, until it expires: an
// entry of overrides in a policy file, or one made while the policy is in force.
// As JSON it is what it is in a policy file. It is a value; what it refers to must
// not be changed. [Matcher.WithOverrides] checks it.
type Override struct {
	ID     string `json:"id"` // as the name of a rule; distinct
	Action Action `json:"action"`

	// Rules are the names of the rules that ActionAllow and ActionLimit are about. ActionAllow is
	// about all if there are none; ActionLimit is about one.
	Rules []string `json:"rules,omitempty"`

	// Match says which requests it is about, as the match of a rule does. ActionBlock and
	// ActionAllow have either that or Key. That of ActionLimit may have only attributes of its
	// rule's limit_keys, so that a bucket has one limit at a time; it may be absent
	// where the rule has none of them. ActionShadow without is about all requests, and
	// so is ActionBreakGlass, which has none.
	Match json.RawMessage `json:"match,omitempty"`

	// Key, in place of Match, is a bucket's key as a decision's explanation, and
	// the log of violations, show it: the override is about the requests that would
	// spend from it, under whatever limit of the rule.
	Key string `json:"key,omitempty"`

	// What limits ActionLimit, as in a rule. Of a rule with several limits these are the
	// ones that are named; the others stay. Shards, leases, and costs that are not
	// said, are the rule's.
	Algorithm string          `json:"algorithm,omitempty"`
	Config    json.RawMessage `json:"algorithm_config,omitempty"`
	Limits    json.RawMessage `json:"limits,omitempty"`

	Reason    string    `json:"reason"`              // required: people ask later
	Author    string    `json:"author"`              // required but in kill_switches
	CreatedAt time.Time `json:"created_at,omitzero"` // not checked
	ExpiresAt time.Time `json:"expires_at"`          // required; from then on it is not there
}
