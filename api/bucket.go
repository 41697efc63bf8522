// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// A Bucket is the answer to GET /v1/bucket.
type Bucket struct {
	// At is the time of the request, by the limiter's clock. The levels are by the store's
	// clock.
	At time.Time `json:"at"`

	// Rule, Limit, Key and Parts are as in [TopKey]. Masked says that the caller's role
	// does not show keys, and that the caller asked by the masked key.
	Rule   string    `json:"rule"`
	Limit  string    `json:"limit"`
	Key    string    `json:"key"`
	Mask   string    `json:"mask,omitempty"`
	Masked bool      `json:"masked"`
	Parts  []KeyPart `json:"parts"`

	// Mode is the rule's, as in policy files: "enforce", "25%". Shadow says that the limit
	// denies nothing for this key.
	Mode   string `json:"mode"`
	Shadow bool   `json:"shadow"`

	// Algorithm is as in policy files, and Words is the limit in words.
	Algorithm string `json:"algorithm"`
	Words     string `json:"words"`

	// Capacity is the most that the limit admits at once, and Remaining is what it would
	// still admit. Both include the queue of a leaky bucket. Owed is the amount that was
	// spent beyond the burst: waiting in the queue, reserved, or charged in advance.
	Capacity  Amount `json:"capacity"`
	Remaining Amount `json:"remaining"`
	Owed      Amount `json:"owed"`

	// Refill is continuous, interval or sliding. With interval, all tokens of a Rate arrive
	// at once, as in fixed windows. With sliding, a spent token counts until Rate.Per is
	// over. Intervals begin at their Anchor, as in policy files; epoch intervals begin
	// Start later. Anchor is empty for the other two.
	Rate   Rate    `json:"rate"`
	Refill string  `json:"refill"`
	Anchor string  `json:"anchor"`
	Start  Seconds `json:"start"`

	// Queue is the room in the queue of a leaky bucket. MaxReserved is the most that
	// another algorithm may owe. One of the two is 0.
	Queue       Amount `json:"queue"`
	MaxReserved Amount `json:"max_reserved"`

	// Shards is the number of buckets in the store that share the limit, 0 for one bucket.
	// Leased says that servers spend from tokens that they took in advance.
	Shards int  `json:"shards"`
	Leased bool `json:"leased"`

	// Cost is the cost of a request that states none. RetryAfter is the wait of such a
	// request. FullAfter is the time until the bucket is full if no request takes more.
	Cost       Amount  `json:"cost"`
	RetryAfter Seconds `json:"retry_after"`
	FullAfter  Seconds `json:"full_after"`

	// Override replaced the rule's limit. BlockedBy denies all requests of this bucket, and
	// AllowedBy lets them pass. Null for none.
	Override  *Override `json:"override"`
	BlockedBy *Override `json:"blocked_by"`
	AllowedBy *Override `json:"allowed_by"`
}

// A Rate is the refill of a bucket: Tokens in the time Per. Algorithms with windows add the
// tokens at the end of each window; sliding ones admit at most Tokens in any such time.
type Rate struct {
	Tokens Amount  `json:"tokens"`
	Per    Seconds `json:"per"`
}

// A KeyPart is one attribute in the key of a bucket.
type KeyPart struct {
	Name  string `json:"name"` // as in policy files
	Value string `json:"value"`

	// Hashed says that Value is a hash, because the value may be a secret or is long.
	Hashed bool `json:"hashed,omitempty"`
}

// A Level is the content of a bucket.
type Level struct {
	Remaining Amount `json:"remaining"`

	// Owed is the amount that was spent beyond the capacity. JSON leaves out 0.
	Owed Amount `json:"owed,omitempty"`
}

// A BucketReset is the answer to POST /v1/bucket/reset.
type BucketReset struct {
	Given  Amount `json:"given"` // the amount that the bucket missed
	Before Bucket `json:"before"`
	After  Level  `json:"after"`

	// Missing are the tokens that the bucket would still miss some time later without the
	// reset. They change along straight lines between the points. An undo takes back no
	// more, so that no client has less than without the reset.
	Missing []Point `json:"missing"`
}

// A BucketTake is the answer to POST /v1/bucket/take.
type BucketTake struct {
	Taken Amount `json:"taken"`
	After Bucket `json:"after"`
}

// A RuleChange is the body of POST /v1/rules/reset. From is empty, or the Next of the answer
// before.
type RuleChange struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	From   string `json:"from,omitempty"`
}

// A RuleReset is the answer to POST /v1/rules/reset.
type RuleReset struct {
	// Cleared is the number of buckets that this request removed. Some may have been full.
	Cleared int64 `json:"cleared"`

	// Next is the From of the request that goes on. Empty: all buckets of the rule are full.
	Next string `json:"next,omitempty"`
}

// A BucketChange is the body of POST /v1/bucket/reset, which has no tokens, and of POST
// /v1/bucket/take.
type BucketChange struct {
	Key    string `json:"key"`
	Tokens Amount `json:"tokens,omitempty"`
	Reason string `json:"reason,omitempty"`
}
