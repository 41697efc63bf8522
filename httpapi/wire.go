// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/seconds"
	"github.com/metehq/mete/store"
)

// A Decision is the answer to a take or a peek, as JSON carries it. The server
// writes it by hand; the type is for those who read it.
type Decision struct {
	Allowed bool `json:"allowed"`

	// Rule is the rule that decided, empty where none applied. Reason says why
	// a request was denied and is empty where it was allowed.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`

	// RetryAfter is how long to wait where the request was denied: null in JSON
	// and [bucket.Never] here where no wait helps, 0 where it was allowed.
	RetryAfter Seconds `json:"retry_after"`

	// Wait is how long an admitted request must wait before its work starts,
	// because it reserved or because a leaky bucket spaces it. JSON leaves it
	// out where it is 0.
	Wait Seconds `json:"wait,omitempty"`

	// Degraded marks a decision that the store had no part in, and Failure says why
	// in a word: see [store.Failure]. JSON leaves it out where there is none.
	Degraded bool          `json:"degraded"`
	Failure  store.Failure `json:"failure,omitempty"`

	// Override is the ID of the one that blocked the request, or let it through
	// whatever the rules say. JSON leaves it out where there is none.
	Override string `json:"override,omitempty"`

	// Limits are the limits the request fell under, in the order of the policy.
	Limits []Limit `json:"limits"`

	// UnknownAttributes are attributes of the request that nothing reads, at most
	// [MaxUnknown]: no rule, no override, no source of a cost. Their names may be
	// mistyped. JSON leaves them out where there are none.
	UnknownAttributes []string `json:"unknown_attributes,omitempty"`
}

// A Limit is one limit's part in a [Decision].
type Limit struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"` // the rule's name, or rule/limit where a rule has several

	// Remaining is what would still be admitted, in whole tokens, rounded down:
	// what the bucket holds or, where requests can wait, what they find room for.
	Remaining int64 `json:"remaining"`

	// Owed is how much more than its capacity has been spent from the bucket, exact to a
	// thousandth: what was reserved, charged in advance or waits in a queue. JSON leaves
	// it out, and it is empty, where nothing is owed.
	Owed json.Number `json:"owed,omitempty"`

	RetryAfter Seconds `json:"retry_after"`
	FullAfter  Seconds `json:"full_after"` // until the bucket is full if nothing more is taken

	// Override is the ID of the one that put this limit in the place of the
	// rule's. JSON leaves it out where there is none.
	Override string `json:"override,omitempty"`

	// Stage is the threshold of staged_actions that is reached, such as "80%". JSON
	// leaves it out where there is none.
	Stage string `json:"stage,omitempty"`
}

// A Problem is an answer that carries no decision, as application/problem+json
// (RFC 9457): the request was not understood, or nothing could be decided.
type Problem struct {
	Type   string `json:"type,omitempty"` // a URI; empty is about:blank
	Title  string `json:"title"`
	Status int    `json:"status"` // the HTTP status

	// Detail says what is wrong and what to do about it.
	Detail string `json:"detail,omitempty"`

	// Pointer is the place in the request body, as a JSON Pointer (RFC 6901):
	// "/requests/3/cost". It is empty where the body is not the problem, or all
	// of it is.
	Pointer string `json:"pointer,omitempty"`

	// Mistakes are all that is wrong with an override, in place of Pointer.
	Mistakes []Mistake `json:"mistakes,omitempty"`
}

// Seconds is a duration that JSON carries as a decimal number of seconds, exact
// to the microsecond: 0.1, 2, 0.000001. [bucket.Never] is null.
type Seconds time.Duration

// Duration returns s as a [time.Duration].
func (s Seconds) Duration() time.Duration { return time.Duration(s) }

// MarshalJSON implements [encoding/json.Marshaler].
func (s Seconds) MarshalJSON() ([]byte, error) {
	return seconds.AppendDuration(nil, time.Duration(s)), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler]. It reads what
// MarshalJSON writes, without rounding, and refuses negative numbers and digits
// finer than a microsecond.
func (s *Seconds) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		*s = Seconds(bucket.Never)
		return nil
	}
	whole, frac, _ := strings.Cut(text, ".")
	if len(frac) > 6 {
		return fmt.Errorf("httpapi: %.40q is not a number of seconds with at most 6 decimals", text)
	}
	micros, err := strconv.ParseUint(whole+frac+"000000"[len(frac):], 10, 63)
	if err != nil || micros > uint64(bucket.Never/time.Microsecond) {
		return fmt.Errorf("httpapi: %.40q is not a number of seconds with at most 6 decimals", text)
	}
	*s = Seconds(time.Duration(micros) * time.Microsecond)
	return nil
}
