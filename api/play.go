// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Play is the body of POST /v1/play: limits side by side, in lanes, all with the same
// traffic.
type Play struct {
	Lanes   []PlayLane  `json:"lanes"`
	Traffic PlayTraffic `json:"traffic"`

	// Export asks for the trace of each lane as well.
	Export bool `json:"export,omitempty"`
}

// A PlayLane is one limit. All algorithms use the same members here. A member that the
// algorithm does not have must be left out.
type PlayLane struct {
	Name      string `json:"name,omitempty"` // for people, and for the rule
	Algorithm string `json:"algorithm"`      // as in a policy file

	// Tokens come every Per: the rate, or the tokens of a window.
	Tokens json.Number `json:"tokens"`
	Per    string      `json:"per"`

	Capacity json.Number `json:"capacity,omitempty"` // the most in the bucket; a token bucket needs it
	Refill   string      `json:"refill,omitempty"`   // of a token bucket: continuous or interval
	Anchor   string      `json:"anchor,omitempty"`   // of intervals and fixed windows: epoch, key or first
	Queue    json.Number `json:"queue,omitempty"`    // of a leaky bucket, which needs it
	Cost     json.Number `json:"cost,omitempty"`     // of a request without one; 1

	// Jitter is the spread of Retry-After, as in "50%"; "0" is none. It shows only if denied
	// requests come back.
	Jitter string `json:"jitter,omitempty"`
}

// PlayTraffic is a sequence of phases, and single requests.
type PlayTraffic struct {
	Phases []PlayPhase `json:"phases"`

	// Hand are the times of single requests, in seconds from the beginning.
	Hand []json.Number `json:"hand,omitempty"`

	// Retry makes each denied request come back after its Retry-After, in whole seconds as
	// HTTP has them.
	Retry bool `json:"retry,omitempty"`
}

// A PlayPhase is one part of the traffic. Its shape decides which members it has.
type PlayPhase struct {
	// Shape is steady, burst, poisson, pause or trace.
	Shape string `json:"shape"`

	// Seconds is the length of the phase. The length of a trace is in its lines.
	Seconds json.Number `json:"seconds,omitempty"`

	Rate  json.Number `json:"rate,omitempty"`  // requests a second; the mean of poisson
	Count int         `json:"count,omitempty"` // of a burst, all at one instant
	Every string      `json:"every,omitempty"` // from one burst to the next; empty for a single one
	Seed  int64       `json:"seed,omitempty"`  // of poisson
	Trace string      `json:"trace,omitempty"` // lines of an access log, or JSON lines
}

// A PlayResult is the answer to POST /v1/play.
type PlayResult struct {
	Seconds  Seconds          `json:"seconds"`  // the length of the traffic
	Requests int              `json:"requests"` // without repeated requests
	Lanes    []PlayLaneResult `json:"lanes"`
}

// A PlayLaneResult is the result of one limit.
type PlayLaneResult struct {
	Name      string   `json:"name"`
	Algorithm string   `json:"algorithm"`
	Rule      string   `json:"rule"`
	Limit     string   `json:"limit"`    // in words
	Capacity  Amount   `json:"capacity"` // the highest level
	Owes      Amount   `json:"owes"`     // the most that the bucket can owe
	PerSecond float64  `json:"per_second"`
	Window    Seconds  `json:"window"` // as Per of the lane
	Policy    string   `json:"policy"` // a policy file
	Warnings  []string `json:"warnings"`

	Totals      PlayTotals       `json:"totals"`
	FirstDenial *PlayFirstDenial `json:"first_denial"` // null for none
	Words       []string         `json:"words"`

	Decisions []PlayDecision `json:"decisions"` // in order of time
	Levels    []Point        `json:"levels"`    // before the requests of an instant

	Trace string `json:"trace,omitempty"` // JSON lines, if the body asked for them
}

// PlayTotals sum up a lane.
type PlayTotals struct {
	Sent    int     `json:"sent"` // with repeated requests
	Allowed int     `json:"allowed"`
	Denied  int     `json:"denied"`
	Delayed int     `json:"delayed"` // allowed, to start later
	Share   float64 `json:"share"`   // allowed of sent; 1 without requests
	Rate    float64 `json:"rate"`    // allowed a second, over the whole time
	Spent   Amount  `json:"spent"`

	LongestWait  Seconds `json:"longest_wait"`  // of a delayed request
	LongestRetry Seconds `json:"longest_retry"` // of a denied request, without null
	Never        int     `json:"never"`         // denied, with a retry_after of null
	Unserved     int     `json:"unserved"`      // to come back after the end
	Crowd        int     `json:"crowd"`         // the most requests at one instant

	// Peak is the most tokens whose requests began within one Window, and PeakAt its time.
	Peak   Amount  `json:"peak"`
	PeakAt Seconds `json:"peak_at"`
}

// A PlayFirstDenial is the first denied request.
type PlayFirstDenial struct {
	Request    int     `json:"request"` // the first is 1
	At         Seconds `json:"at"`
	RetryAfter Seconds `json:"retry_after"`
	Before     int     `json:"before"` // requests that were allowed before it
}

// A PlayDecision is one request and its answer. JSON has a list of ten numbers: at, allowed
// (0 or 1), retry_after (null for never), remaining (whole tokens), wait, before, level,
// cost, client, try.
type PlayDecision struct {
	At         bucket.Instant // from the beginning
	Allowed    bool
	RetryAfter time.Duration
	Remaining  int64 // whole tokens that would still be admitted
	Wait       time.Duration
	Before     bucket.Tokens // the level before the request; below 0 if the bucket owes
	Level      bucket.Tokens // the level after it
	Cost       bucket.Tokens
	Client     int // its number, from 0 on
	Try        int // 1 for the first
}

// MarshalJSON implements [encoding/json.Marshaler].
func (d PlayDecision) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64), '[')
	b = append(AppendMicros(b, int64(d.At)), ",0,"...)
	if d.Allowed {
		b[len(b)-2] = '1'
	}
	b = append(Seconds(d.RetryAfter).Append(b), ',')
	b = append(strconv.AppendInt(b, d.Remaining, 10), ',')
	b = append(Seconds(d.Wait).Append(b), ',')
	for _, t := range []bucket.Tokens{d.Before, d.Level, d.Cost} {
		b = append(append(b, t.String()...), ',')
	}
	b = append(strconv.AppendInt(b, int64(d.Client), 10), ',')
	return append(strconv.AppendInt(b, int64(d.Try), 10), ']'), nil
}

// PlayPresets are the answer to GET /v1/play/presets: examples, and the bounds of a play.
type PlayPresets struct {
	Presets    []PlayPreset `json:"presets"`
	Algorithms []string     `json:"algorithms"`
	Shapes     []string     `json:"shapes"`
	Bounds     PlayBounds   `json:"bounds"`
}

// PlayBounds are the most of each that a [Play] may have. Body is in bytes.
type PlayBounds struct {
	Lanes    int `json:"lanes"`
	Phases   int `json:"phases"`
	Requests int `json:"requests"`
	Seconds  int `json:"seconds"`
	Hand     int `json:"hand"`
	Body     int `json:"body"`
}

// A PlayPreset is an example.
type PlayPreset struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"` // what to look at

	// Source is the text that the example is from; null for none.
	Source *PlaySource `json:"source"`

	Input Play `json:"input"`
}

// A PlaySource is a text on rate limiting with an example.
type PlaySource struct {
	Title string `json:"title"`

	// Note names the differences between the text and its numbers; empty for none.
	Note string `json:"note,omitempty"`
}
