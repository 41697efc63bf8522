// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// A WatchEvent is the data of the event watch in the stream GET /v1/watch: the bucket of one key. It is sent
// twice per second, and in between when there are decisions.
//
// The stream has two other events: trouble, a [WatchTrouble], while the server cannot read the bucket; and bye
// when the server stops.
type WatchEvent struct {
	At Instant `json:"at"`

	// Bucket is the bucket in the store, twice per second. JSON omits it in other events.
	Bucket *Bucket `json:"bucket,omitempty"`

	// Levels are points of the level since the previous event, and after At if no request takes more, with
	// straight lines between them. A step is two points, a microsecond apart. One point is at At. The list is
	// empty while the level is unknown.
	Levels []Point `json:"levels"`

	// Decisions are the decisions since the previous event, in order. Dropped counts decisions above the maximum.
	Decisions []WatchedDecision `json:"decisions"`
	Dropped   int               `json:"dropped"`

	// RetryAfter is the wait, from At, of a request with the default cost. FullAfter is the time until the bucket
	// is full. Both are 0 while the level is unknown.
	RetryAfter Seconds `json:"retry_after"`
	FullAfter  Seconds `json:"full_after"`
}

// A WatchedDecision is one decision about the bucket of a [WatchEvent].
type WatchedDecision struct {
	At        Instant `json:"at"`
	Allowed   bool    `json:"allowed"`
	Cost      Amount  `json:"cost"`
	Remaining Amount  `json:"remaining"`

	// RetryAfter is 0 if another limit denied the request. Wait is the delay of a queued request.
	RetryAfter Seconds `json:"retry_after"`
	Wait       Seconds `json:"wait"`

	// Shadow reports that the limit denies nothing. Degraded reports a decision without the store, by a local
	// share.
	Shadow   bool `json:"shadow"`
	Degraded bool `json:"degraded"`
}

// A WatchTrouble is the reason why the level of a watched bucket is unknown.
type WatchTrouble struct {
	Detail string `json:"detail"`
}

// A Point is the level of a bucket at a time. In JSON it is a list of two numbers: seconds and tokens. Seconds
// are negative before the time of the event, and tokens if the bucket owes.
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

// An Instant is a time, exact to a microsecond. In JSON it is a number of seconds since 1970.
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
