// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"strconv"
	"time"
)

// A Request is the body of POST /v1/take, /v1/peek, /v1/refund, /v1/reset, /v1/explain, /v1/slots/renew and
// /v1/slots/release.
type Request struct {
	// Attributes are the values that policies match: {"header:x-api-key": "k1"}.
	Attributes map[string]string `json:"attributes"`

	// Cost overrides the policy's cost. JSON omits 0.
	Cost Amount `json:"cost,omitempty"`

	// MaxWait, such as "500ms", makes a reservation: the request spends tokens that refill within that time.
	MaxWait string `json:"max_wait,omitempty"`

	// ID identifies retries of one request, so that it is charged once.
	ID string `json:"id,omitempty"`

	// Slot is the Slot of the [Decision] about the request, to renew or release its slots. JSON omits an empty Slot.
	Slot string `json:"slot,omitempty"`
}

// Held is the response of POST /v1/slots/renew.
type Held struct {
	// Held reports whether the request still holds all of its slots.
	Held bool `json:"held"`

	// Lease is the time after which the slots end, unless they are renewed again. JSON omits 0.
	Lease Seconds `json:"lease,omitempty"`
}

// Append appends h as JSON, like [Decision.Append].
func (h *Held) Append(b []byte) []byte {
	b = strconv.AppendBool(append(b, `{"held":`...), h.Held)
	if h.Lease > 0 {
		b = h.Lease.Append(append(b, `,"lease":`...))
	}
	return append(b, '}')
}

// A Batch is the body of several requests.
type Batch struct {
	Requests []Request `json:"requests"`
}

// A Decision is the response of POST /v1/take and POST /v1/peek.
type Decision struct {
	Allowed bool `json:"allowed"`

	// Rule is the rule that decided, or empty if no rule applied. Reason is the reason for a denial, or empty if
	// the request is allowed.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`

	// RetryAfter is the wait after a denial: [bucket.Never] if no wait helps, 0 if the request is allowed.
	RetryAfter Seconds `json:"retry_after"`

	// Wait is the time until the work of an allowed request may start, because of a reservation or a leaky
	// bucket. JSON omits 0.
	Wait Seconds `json:"wait,omitempty"`

	// Degraded reports a decision without the store. Failure is the cause: timeout, unavailable, overloaded or
	// error. JSON omits an empty Failure.
	Degraded bool   `json:"degraded"`
	Failure  string `json:"failure,omitempty"`

	// Override is the ID of the override that blocked or allowed the request. JSON omits it if there is none.
	Override string `json:"override,omitempty"`

	// Slot identifies the slots of concurrency limits that an allowed request holds, and Lease is the time after which they end
	// unless they are renewed. Release them when the request ends: see [Request]. JSON omits both without slots.
	Slot  string  `json:"slot,omitempty"`
	Lease Seconds `json:"lease,omitempty"`

	// Limits are the limits of the request in policy order.
	Limits []Limit `json:"limits"`

	// UnknownAttributes are attributes that no rule, override or cost reads, for example because of a typo. JSON
	// omits an empty list.
	UnknownAttributes []string `json:"unknown_attributes,omitempty"`
}

// A Limit is the state of one limit in a [Decision].
type Limit struct {
	Rule  string `json:"rule"`
	Limit string `json:"limit"` // the rule's name, or rule/limit if the rule has several limits

	// Remaining is the number of whole tokens that the limit would still allow, including the queue of a leaky
	// bucket.
	Remaining int64 `json:"remaining"`

	// Owed is the amount spent in excess of the capacity: reserved, charged in advance or queued. JSON omits 0.
	Owed Amount `json:"owed,omitempty"`

	RetryAfter Seconds `json:"retry_after"`
	FullAfter  Seconds `json:"full_after"` // until the bucket is full if no request takes more

	// Penalty is the running penalty of the key, or nil. JSON omits nil.
	Penalty *Penalty `json:"penalty,omitempty"`

	// StoreFull is the effect of a full store in memory on the bucket: shared, opened or closed. JSON omits an empty one.
	StoreFull string `json:"store_full,omitempty"`

	// Override is the ID of the override that replaced the rule's limit. JSON omits it if there is none.
	Override string `json:"override,omitempty"`

	// Stage is the highest threshold of staged_actions that the bucket reached, such as "80%". JSON omits it if
	// there is none.
	Stage string `json:"stage,omitempty"`
}

// A Penalty is a running penalty: all requests are denied until it ends.
type Penalty struct {
	Left  Seconds `json:"left"`  // the time until it ends
	Level int64   `json:"level"` // from 1: the number of penalties since the key last started over
}

// PenaltyOf returns a penalty, or nil if left is 0.
func PenaltyOf(left time.Duration, level int64) *Penalty {
	if left == 0 {
		return nil
	}
	return &Penalty{Seconds(left), level}
}

// Decisions is the response to a batch: a [Decision] or a [Problem] for each request.
type Decisions struct {
	Responses []json.RawMessage `json:"responses"`
}

// Append appends d as JSON. It writes the same members as [encoding/json.Marshal] and allocates only to grow b.
func (d *Decision) Append(b []byte) []byte {
	b = strconv.AppendBool(append(b, `{"allowed":`...), d.Allowed)
	b = appendString(append(b, `,"rule":`...), d.Rule)
	b = appendString(append(b, `,"reason":`...), d.Reason)
	b = d.RetryAfter.Append(append(b, `,"retry_after":`...))
	if d.Wait > 0 {
		b = d.Wait.Append(append(b, `,"wait":`...))
	}
	b = strconv.AppendBool(append(b, `,"degraded":`...), d.Degraded)
	b = appendGiven(b, `,"failure":`, d.Failure)
	b = appendGiven(b, `,"override":`, d.Override)
	b = appendGiven(b, `,"slot":`, d.Slot)
	if d.Lease > 0 {
		b = d.Lease.Append(append(b, `,"lease":`...))
	}
	b = append(b, `,"limits":[`...)
	for i := range d.Limits {
		l := &d.Limits[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"rule":`...), l.Rule)
		b = appendString(append(b, `,"limit":`...), l.Limit)
		b = strconv.AppendInt(append(b, `,"remaining":`...), l.Remaining, 10)
		if l.Owed > 0 {
			b = append(append(b, `,"owed":`...), l.Owed.String()...)
		}
		b = l.RetryAfter.Append(append(b, `,"retry_after":`...))
		b = l.FullAfter.Append(append(b, `,"full_after":`...))
		if p := l.Penalty; p != nil {
			b = p.Left.Append(append(b, `,"penalty":{"left":`...))
			b = append(strconv.AppendInt(append(b, `,"level":`...), p.Level, 10), '}')
		}
		b = appendGiven(b, `,"store_full":`, l.StoreFull)
		b = appendGiven(b, `,"override":`, l.Override)
		b = append(appendGiven(b, `,"stage":`, l.Stage), '}')
	}
	b = append(b, ']')
	for i, name := range d.UnknownAttributes {
		if i == 0 {
			b = append(b, `,"unknown_attributes":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendString(b, name)
	}
	if len(d.UnknownAttributes) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendGiven(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, name...), value)
}

// appendString appends s as a JSON string. Rule names are nearly always plain, so they skip encoding/json.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
