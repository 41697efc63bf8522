// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Top is the answer to GET /v1/top: the keys with the most records. Package topkeys says
// what the counts guarantee.
type Top struct {
	Kind string `json:"kind"` // denied, shadow or near

	// Since and At are the time that the counts cover.
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`

	// Counters is the number of keys that each rule has a counter for.
	Counters int `json:"counters"`

	// Masked says that the caller's role does not show keys. Key and Parts are then masked.
	Masked bool `json:"masked"`

	// Total is the number of records in that time, of all rules asked for. Dropped is the
	// number of records without a counter, of any rule.
	Total   uint64 `json:"total"`
	Dropped uint64 `json:"dropped"`

	// Rules are rules with records, the one with the most first, at most as many as keys
	// were asked for. RuleCount is the number of all such rules.
	Rules     []TopRule `json:"rules"`
	RuleCount int       `json:"rule_count"`

	// Keys are the keys of all these rules, the highest count first.
	Keys []TopKey `json:"keys"`
}

// A TopRule is one rule in [Top].
type TopRule struct {
	Rule    string `json:"rule"`
	Total   uint64 `json:"total"`
	Dropped uint64 `json:"dropped"`

	// Keys is the number of keys with a counter. Unlisted is the most records that any
	// other key can have.
	Keys     int    `json:"keys"`
	Unlisted uint64 `json:"unlisted"`
}

// A TopKey is one key in [Top].
type TopKey struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"` // the rule's name, or rule/limit if a rule has several

	// Key is the bucket's key, as an explanation shows it: a tilde begins the hash of a
	// value that may be a secret or is long. A masked key has the limit and a hash, which
	// tells it from others and finds it again.
	Key string `json:"key"`

	// Mask is the hash in a masked key. JSON leaves it out if the key is not masked.
	Mask string `json:"mask,omitempty"`

	// Cut says that the key is too long: the server keeps its beginning and a hash.
	Cut bool `json:"cut,omitempty"`

	// Parts are the attributes in the key, in the order of the rule's limit_keys. Of a
	// masked address, the network is left; of another value the first two letters; of a
	// hash nothing.
	Parts []KeyPart `json:"parts"`

	// Count is the number of records, at most Error too many.
	Count uint64 `json:"count"`
	Error uint64 `json:"error"`

	// First is the time since which the key has records without a long pause, as far as
	// that is known. Last is the time of the last record.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	// RetryAfter is the wait from At on, by the last denial: [bucket.Never] if no wait
	// helps, 0 if the client may try now or was not denied.
	RetryAfter Seconds `json:"retry_after"`
}
