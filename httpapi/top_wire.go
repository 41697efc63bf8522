// SPDX-License-Identifier: Apache-2.0

package httpapi

import "time"

// TopKeys is the answer to GET /v1/top, as JSON carries it: the keys that were
// recorded most. What is guaranteed of it is said in package topkeys.
type TopKeys struct {
	// Kind is what was counted: denied, shadow or near.
	Kind string `json:"kind"`

	// Since and At are the time that it is about.
	Since time.Time `json:"since"`
	At    time.Time `json:"at"`

	// Counters is how many keys a rule has a counter for.
	Counters int `json:"counters"`

	// Masked says that who asks may not see keys. Then Key, Parts and Limit show what
	// can be shown of them.
	Masked bool `json:"masked"`

	// Total is how many records were made in that time, of all rules that were asked
	// for, and Dropped how many were not, whosever they were.
	Total   uint64 `json:"total"`
	Dropped uint64 `json:"dropped"`

	// Rules are those with records, the ones with most first, at most as many as keys
	// were asked for. RuleCount is how many there are.
	Rules     []TopRule `json:"rules"`
	RuleCount int       `json:"rule_count"`

	// Keys are those of all these rules, the highest count first.
	Keys []TopKey `json:"keys"`
}

// A TopRule is one rule in [TopKeys].
type TopRule struct {
	Rule    string `json:"rule"`
	Total   uint64 `json:"total"`
	Dropped uint64 `json:"dropped"`

	// Keys is how many keys have a counter, and Unlisted how often any other one was
	// recorded at most.
	Keys     int    `json:"keys"`
	Unlisted uint64 `json:"unlisted"`
}

// A TopKey is one key in [TopKeys].
type TopKey struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"` // the rule's name, or rule/limit where a rule has several

	// Key is the bucket's, as an explanation shows it: a tilde stands there for the
	// hash of what may be a secret, or is long. Of a masked one only the limit is left,
	// and a hash by which it can be told from others and found again.
	Key string `json:"key"`

	// Cut says that the key is so long that only its beginning is known, and a hash.
	Cut bool `json:"cut,omitempty"`

	// Parts are what the key is made of, in the order of the rule's limit_keys. Where
	// it is masked, an address is its network, of other values the first two letters
	// are left, and of hashes nothing.
	Parts []TopPart `json:"parts"`

	// Count is how often it was recorded, and at most Error too many.
	Count uint64 `json:"count"`
	Error uint64 `json:"error"`

	// First is since when it has been recorded without a long pause, as far as that is
	// known, and Last when it was last.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`

	// RetryAfter is how long it has to wait from At on, as the last denial has said:
	// null for ever, and 0 where it may try now, or was not denied.
	RetryAfter Seconds `json:"retry_after"`
}

// A TopPart is one attribute in a key.
type TopPart struct {
	Name  string `json:"name"` // as in policy files
	Value string `json:"value"`

	// Hashed says that the value is a hash of what may be a secret, or is long.
	Hashed bool `json:"hashed,omitempty"`
}
