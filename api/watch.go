// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// A WatchEvent is the data of an event named watch in the stream of GET /v1/watch: the
// bucket of one key. There is one twice a second, and others between as there are decisions.
//
// The stream has two other events. While the server cannot look at the bucket there is a
// [WatchTrouble], named trouble. The event bye says that the server stops.
type WatchEvent struct {
	At Instant `json:"at"`

	// Bucket is what the store shows, twice a second. JSON leaves it out of other events.
	Bucket *Bucket `json:"bucket,omitempty"`

	// Levels are the level since the event before, and from At on if no request takes more. The
	// level goes along straight lines between the points. A step is two points, a microsecond
	// apart. One point is at At. There are none while the level is unknown.
	Levels []Point `json:"levels"`

	// Decisions are those since the event before, in order. Dropped is the number of further
	// decisions, which are too many to list.
	Decisions []WatchedDecision `json:"decisions"`
	Dropped   int               `json:"dropped"`

	// RetryAfter is the wait from At on of a request that states no cost. FullAfter is the
	// time until the bucket is full. Both are 0 while the level is unknown.
	RetryAfter Seconds `json:"retry_after"`
	FullAfter  Seconds `json:"full_after"`
}

// A WatchedDecision is one decision about the bucket of a [WatchEvent].
type WatchedDecision struct {
	At        Instant `json:"at"`
	Allowed   bool    `json:"allowed"`
	Cost      Amount  `json:"cost"`
	Remaining Amount  `json:"remaining"`

	// RetryAfter is 0 if another limit denied the request. Wait is the time until a queued
	// request starts.
	RetryAfter Seconds `json:"retry_after"`
	Wait       Seconds `json:"wait"`

	// Shadow says that the limit denies nothing. Degraded says that the store had no part in
	// the decision; Remaining is then this server's share.
	Shadow   bool `json:"shadow"`
	Degraded bool `json:"degraded"`
}

// A WatchTrouble is the reason why a watched bucket is unknown at the moment.
type WatchTrouble struct {
	Detail string `json:"detail"`
}

// A Point is a level of a bucket. JSON has a list of two numbers: the seconds after a time,
// below 0 for a time before it, and the tokens, below 0 if the bucket owes them.
type Point struct {
	After time.Duration
	Level Amount
}

// MarshalJSON implements [encoding/json.Marshaler].
func (p Point) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 32), '[')
	micros := int64(p.After / time.Microsecond)
	if micros < 0 {
		b, micros = append(b, '-'), -micros
	}
	b = append(AppendMicros(b, micros), ',')
	return append(append(b, p.Level.String()...), ']'), nil
}

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (p *Point) UnmarshalJSON(data []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return fmt.Errorf("api: %.40q is not a point: %w", data, err)
	}
	text, before := strings.CutPrefix(string(pair[0]), "-")
	var after Seconds
	if err := after.UnmarshalJSON([]byte(text)); err != nil {
		return err
	}
	if p.After = after.Duration(); before {
		p.After = -p.After
	}
	return p.Level.UnmarshalJSON(pair[1])
}

// An Instant is a time, exact to a microsecond. JSON has a number of seconds since 1970.
type Instant bucket.Instant

// MarshalJSON implements [encoding/json.Marshaler].
func (i Instant) MarshalJSON() ([]byte, error) { return AppendMicros(nil, int64(i)), nil }

// UnmarshalJSON implements [encoding/json.Unmarshaler].
func (i *Instant) UnmarshalJSON(data []byte) error {
	var s Seconds
	if err := s.UnmarshalJSON(data); err != nil {
		return err
	}
	*i = Instant(s.Duration() / time.Microsecond)
	return nil
}
