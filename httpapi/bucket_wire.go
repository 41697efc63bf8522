// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"time"

	"github.com/metehq/mete/policy"
)

// A Bucket is the answer to GET /v1/bucket, as JSON carries it. Amounts are in
// tokens, exact to a thousandth.
type Bucket struct {
	// At is when it was asked for, by the limiter's clock. What the bucket holds is at
	// the store's.
	At time.Time `json:"at"`

	// Rule, Limit, Key and Parts are as in [TopKey]. Masked says that who asks may not
	// see the key, and does not know it: they have asked by its mask.
	Rule   string    `json:"rule"`
	Limit  string    `json:"limit"`
	Key    string    `json:"key"`
	Masked bool      `json:"masked"`
	Parts  []TopPart `json:"parts"`

	// Mode is the rule's, as in policy files: "enforce", "25%". Shadow says that the
	// limit denies nothing, for this key.
	Mode   string `json:"mode"`
	Shadow bool   `json:"shadow"`

	// Algorithm is as in policy files, and Words is the limit in force in words.
	Algorithm string `json:"algorithm"`
	Words     string `json:"words"`

	// Capacity is the most that is admitted at once, with what can wait in a queue, and
	// Remaining what would still be admitted. Owed is how much more than its burst has
	// been spent: what waits in the queue, or has been reserved or charged in advance.
	Capacity  json.Number `json:"capacity"`
	Remaining json.Number `json:"remaining"`
	Owed      json.Number `json:"owed"`

	// Refill is continuous, interval where a whole Rate's tokens come at once, as in
	// fixed windows, or sliding where what was spent longer ago than that counts no more.
	// Intervals begin at their Anchor, as in policy files, epoch ones so much later:
	// Start. Anchor is empty for the others.
	Rate   BucketRate `json:"rate"`
	Refill string     `json:"refill"`
	Anchor string     `json:"anchor"`
	Start  Seconds    `json:"start"`

	// Queue is how much can wait in the queue of a leaky bucket, and MaxReserved how
	// much any other may owe. The other one is 0.
	Queue       json.Number `json:"queue"`
	MaxReserved json.Number `json:"max_reserved"`

	// Shards is how many buckets of the store it is split over; 0 where it is one.
	Shards int  `json:"shards"`
	Leased bool `json:"leased"` // servers spend from tokens that they took in advance

	// Cost is what a request costs that says nothing, and RetryAfter how long that has
	// to wait. FullAfter is how long it takes until the bucket is full if nothing more
	// is taken.
	Cost       json.Number `json:"cost"`
	RetryAfter Seconds     `json:"retry_after"`
	FullAfter  Seconds     `json:"full_after"`

	// Override is the one that has put the limit in the place of the rule's; BlockedBy
	// denies all requests that would spend from the bucket, and AllowedBy lets them
	// pass. Null for none.
	Override  *policy.Override `json:"override"`
	BlockedBy *policy.Override `json:"blocked_by"`
	AllowedBy *policy.Override `json:"allowed_by"`
}

// A BucketRate is how fast a bucket refills: so many Tokens in so much time, whole
// ones at its end where the algorithm has windows, or the most in any such time where
// they slide.
type BucketRate struct {
	Tokens json.Number `json:"tokens"`
	Per    Seconds     `json:"per"`
}

// A BucketReset is the answer to POST /v1/bucket/reset.
type BucketReset struct {
	// Given is what the bucket missed, and has now.
	Given  json.Number `json:"given"`
	Before Bucket      `json:"before"`
	After  Level       `json:"after"`
}

// A BucketTake is the answer to POST /v1/bucket/take.
type BucketTake struct {
	Taken json.Number `json:"taken"`
	After Bucket      `json:"after"`
}

// An Act is what somebody asks to do to a bucket: see [Config.Acted].
type Act struct {
	Key    string
	Masked string // the key as those see it who may not
	Reason string // may be empty
}

// An Activity is something that an administrator has asked for that changes
// something.
type Activity struct {
	At   time.Time `json:"at"`
	What string    `json:"what"` // as in the log: "reset", "overrides PUT", "bucket/take"
	By   string    `json:"by"`   // the name of the token; empty where there was none
	Role string    `json:"role"`
	From string    `json:"from"` // an address; of IPv6, its network

	// Status is that of the answer: from 400 on nothing was done, but at 503, where the
	// store may have done it and not said so.
	Status int `json:"status"`

	// Key is that of the bucket, and Reason why, where it was said. Both are empty where
	// it is about no single bucket.
	Key    string `json:"key,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Activities are the answer to GET /v1/activity.
type Activities struct {
	// Masked says that who asks may not see keys.
	Masked   bool       `json:"masked"`
	Activity []Activity `json:"activity"` // the newest first
}
