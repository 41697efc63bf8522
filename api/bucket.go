// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// A Bucket is the response of GET /v1/bucket.
type Bucket struct {
	// At is the time of the request by the limiter's clock. The levels use the store's clock.
	At time.Time `json:"at"`

	// Rule, Limit, Key and Parts are as in [TopKey]. Masked reports that the key is masked, because the caller's
	// role may not see keys and the caller used the masked key.
	Rule   string    `json:"rule"`
	Limit  string    `json:"limit"`
	Key    string    `json:"key"`
	Mask   string    `json:"mask,omitempty"`
	Masked bool      `json:"masked"`
	Parts  []KeyPart `json:"parts"`

	// Mode is the mode of the rule as in policy files: "enforce", "25%". Shadow reports that the limit denies
	// nothing for this key.
	Mode   string `json:"mode"`
	Shadow bool   `json:"shadow"`

	// Algorithm is as in policy files. Words describes the limit.
	Algorithm string `json:"algorithm"`
	Words     string `json:"words"`

	// Capacity is the most that the limit allows at once. Remaining is the amount that is left. Both include the
	// queue of a leaky bucket. Owed is the amount spent in excess of the burst: queued, reserved, or charged in
	// advance.
	Capacity  Amount `json:"capacity"`
	Remaining Amount `json:"remaining"`
	Owed      Amount `json:"owed"`

	// Refill is continuous, interval or sliding. With interval, all tokens of a Rate arrive at once, as in fixed
	// windows. With sliding, a spent token counts until Rate.Per has passed. Anchor is the start of intervals as
	// in policy files, and empty for other refills. Start is the offset of epoch intervals.
	Rate   Rate    `json:"rate"`
	Refill string  `json:"refill"`
	Anchor string  `json:"anchor"`
	Start  Seconds `json:"start"`

	// Queue is the queue size of a leaky bucket. MaxReserved is the most that another algorithm may owe. One of
	// them is 0.
	Queue       Amount `json:"queue"`
	MaxReserved Amount `json:"max_reserved"`

	// Shards is the number of buckets that share the limit in the store, or 0 for one bucket. Leased reports that
	// servers lease tokens in advance.
	Shards int  `json:"shards"`
	Leased bool `json:"leased"`

	// Cost is the default cost of a request. RetryAfter is the wait of such a request. FullAfter is the time
	// until the bucket is full if no request takes more.
	Cost       Amount  `json:"cost"`
	RetryAfter Seconds `json:"retry_after"`
	FullAfter  Seconds `json:"full_after"`

	// Penalty is the running penalty of the key, or nil. JSON omits nil.
	Penalty *Penalty `json:"penalty,omitempty"`

	// Slots are the slots of a concurrency limit that requests hold, in the order of their ends, at most 100. JSON omits
	// an empty list.
	Slots []Slot `json:"slots,omitempty"`

	// Override replaces the rule's limit. BlockedBy denies all requests of this bucket. AllowedBy allows them.
	// Null if there is none.
	Override  *Override `json:"override"`
	BlockedBy *Override `json:"blocked_by"`
	AllowedBy *Override `json:"allowed_by"`
}

// A Slot is a slot that a request holds.
type Slot struct {
	// ID is for /v1/slots/renew and /v1/slots/release. Callers without the role operate get the first 8 digits.
	ID string `json:"id"`

	// Left is the time until the slot ends, unless its request renews or releases it.
	Left Seconds `json:"left"`
}

// A Rate is the refill of a bucket: Tokens per Per. Window algorithms add the tokens at the end of each window.
// Sliding ones allow at most Tokens in any period of that length.
type Rate struct {
	Tokens Amount  `json:"tokens"`
	Per    Seconds `json:"per"`
}

// A KeyPart is one attribute in the key of a bucket.
type KeyPart struct {
	Name  string `json:"name"` // as in policy files
	Value string `json:"value"`

	// Hashed reports that Value is a hash, because the value is long or may be a secret.
	Hashed bool `json:"hashed,omitempty"`
}

type Level struct {
	Remaining Amount `json:"remaining"`

	// Owed is the amount spent in excess of the capacity. JSON omits 0.
	Owed Amount `json:"owed,omitempty"`
}

// A BucketReset is the response of POST /v1/bucket/reset.
type BucketReset struct {
	Given  Amount `json:"given"` // tokens that the reset added
	Before Bucket `json:"before"`
	After  Level  `json:"after"`

	// Missing is the number of tokens that the bucket would lack without the reset, as a curve over time. Interpolate
	// linearly between the points. An undo takes back at most this number, so no client has fewer tokens than
	// without the reset.
	Missing []Point `json:"missing"`
}

// A BucketTake is the response of POST /v1/bucket/take.
type BucketTake struct {
	Taken Amount `json:"taken"`
	After Bucket `json:"after"`
}

// A RuleChange is the body of POST /v1/rules/reset. From is empty or the Next of the previous response.
type RuleChange struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	From   string `json:"from,omitempty"`
}

// A RuleReset is the response of POST /v1/rules/reset.
type RuleReset struct {
	// Cleared is the number of buckets that this request removed. Some may have been full.
	Cleared int64 `json:"cleared"`

	// Next is the From of the next request. Empty if all buckets of the rule are full.
	Next string `json:"next,omitempty"`
}

// A BucketChange is the body of POST /v1/bucket/reset, without tokens, and of POST /v1/bucket/take.
type BucketChange struct {
	Key    string `json:"key"`
	Tokens Amount `json:"tokens,omitempty"`
	Reason string `json:"reason,omitempty"`
}
