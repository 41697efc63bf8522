// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Top is the response of GET /v1/top: the keys with the most records. See package topkeys for their accuracy.
type Top struct {
	Kind string `json:"kind"` // denied, shadow or near

	// Since and At are the time range of the counts.
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`

	// Counters is the number of keys that are counted per rule.
	Counters int `json:"counters"`

	// Masked reports that the caller's role may not see keys. Key and Parts are then masked.
	Masked bool `json:"masked"`

	// Total is the number of records of the selected rules in the time range. Dropped is the number of records of
	// all rules without a counter.
	Total   uint64 `json:"total"`
	Dropped uint64 `json:"dropped"`

	// Rules lists the rules with the most records, at most the requested number. RuleCount counts all rules with
	// records.
	Rules     []TopRule `json:"rules"`
	RuleCount int       `json:"rule_count"`

	// Keys lists the keys of these rules, highest count first.
	Keys []TopKey `json:"keys"`
}

// A TopRule is one rule in [Top].
type TopRule struct {
	Rule    string `json:"rule"`
	Total   uint64 `json:"total"`
	Dropped uint64 `json:"dropped"`

	// Keys is the number of keys with a counter. Unlisted is an upper bound for the records of any other key.
	Keys     int    `json:"keys"`
	Unlisted uint64 `json:"unlisted"`
}

// A TopKey is one key in [Top].
type TopKey struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"` // the rule's name, or rule/limit if the rule has several limits

	// Key is the bucket's key as in an explanation: a tilde starts the hash of a value that is long or may be
	// a secret. A masked key has the limit and a hash that identifies the key.
	Key string `json:"key"`

	// Mask is the hash in a masked key. JSON omits it if the key is not masked.
	Mask string `json:"mask,omitempty"`

	// Cut reports that the key was too long, so the server kept its start and a hash.
	Cut bool `json:"cut,omitempty"`

	// Parts are the attributes in the key in the order of the rule's limit_keys. A masked address keeps its network,
	// another masked value its first two letters, and a masked hash nothing.
	Parts []KeyPart `json:"parts"`

	// Count is the number of records. It is at most Error too high.
	Count uint64 `json:"count"`
	Error uint64 `json:"error"`

	// First is the approximate time since which the key has had records without a long pause. Last is the time of
	// the last record.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	// RetryAfter is the part of the last denial's wait that remains at At. It is [bucket.Never] if no wait helps,
	// and 0 if the client may retry now.
	RetryAfter Seconds `json:"retry_after"`
}
