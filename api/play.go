// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
)

// A Play is the body of POST /v1/play: one or more limits, in lanes, with the same traffic.
type Play struct {
	Lanes   []PlayLane  `json:"lanes"`
	Traffic PlayTraffic `json:"traffic"`

	// Export adds a trace of each lane to the response.
	Export bool `json:"export,omitempty"`
}

// A PlayLane is one limit. Members that the algorithm does not use must be omitted.
type PlayLane struct {
	Name      string `json:"name,omitempty"` // display name and rule name
	Algorithm string `json:"algorithm"`      // as in a policy file

	// Tokens per Per: the rate, or the tokens of a window. Concurrency: how many requests may run at once.
	Tokens json.Number `json:"tokens"`
	Per    string      `json:"per"` // time of Tokens. Concurrency: how long each request runs

	Capacity json.Number `json:"capacity,omitempty"` // bucket size; required for a token bucket
	Refill   string      `json:"refill,omitempty"`   // token bucket: continuous or interval
	Anchor   string      `json:"anchor,omitempty"`   // intervals and fixed windows: epoch, key or first
	Queue    json.Number `json:"queue,omitempty"`    // queue size; required for a leaky bucket
	Cost     json.Number `json:"cost,omitempty"`     // default cost of a request; 1 if omitted

	// Jitter is the spread of Retry-After, such as "50%"; "0" disables it. It matters only if denied requests are
	// retried.
	Jitter string `json:"jitter,omitempty"`
}

// PlayTraffic is a sequence of phases plus single requests.
type PlayTraffic struct {
	Phases []PlayPhase `json:"phases"`

	// Hand lists the times of single requests, in seconds from the start.
	Hand []json.Number `json:"hand,omitempty"`

	// Retry makes denied requests retry after their Retry-After, in whole seconds as in HTTP.
	Retry bool `json:"retry,omitempty"`
}

// A PlayPhase is one part of the traffic. Its shape determines which members it has.
type PlayPhase struct {
	// Shape is steady, burst, poisson, pause or trace.
	Shape string `json:"shape"`

	// Seconds is the length of the phase. A trace determines its own length.
	Seconds json.Number `json:"seconds,omitempty"`

	Rate  json.Number `json:"rate,omitempty"`  // requests per second; the mean for poisson
	Count int         `json:"count,omitempty"` // requests of a burst, all at once
	Every string      `json:"every,omitempty"` // time between bursts; empty for a single burst
	Seed  int64       `json:"seed,omitempty"`  // seed for poisson
	Trace string      `json:"trace,omitempty"` // lines of an access log, or JSON lines
}

// A PlayResult is the response of POST /v1/play.
type PlayResult struct {
	Seconds  Seconds          `json:"seconds"`  // length of the traffic
	Requests int              `json:"requests"` // without retries
	Lanes    []PlayLaneResult `json:"lanes"`
}

// A PlayLaneResult is the result of one limit.
type PlayLaneResult struct {
	Name      string   `json:"name"`
	Algorithm string   `json:"algorithm"`
	Rule      string   `json:"rule"`
	Limit     string   `json:"limit"`    // description
	Capacity  Amount   `json:"capacity"` // highest level
	Owes      Amount   `json:"owes"`     // most that the bucket can owe
	PerSecond float64  `json:"per_second"`
	Window    Seconds  `json:"window"` // Per of the lane
	Policy    string   `json:"policy"` // policy file of the lane
	Warnings  []string `json:"warnings"`

	Totals      PlayTotals       `json:"totals"`
	FirstDenial *PlayFirstDenial `json:"first_denial"` // null for none
	Words       []string         `json:"words"`

	Decisions []PlayDecision `json:"decisions"` // in time order
	Levels    []Point        `json:"levels"`    // levels before the requests at each instant

	Trace string `json:"trace,omitempty"` // JSON lines, if Export is set
}

// PlayTotals summarizes a lane.
type PlayTotals struct {
	Sent    int     `json:"sent"` // including retries
	Allowed int     `json:"allowed"`
	Denied  int     `json:"denied"`
	Delayed int     `json:"delayed"` // allowed with a delay
	Share   float64 `json:"share"`   // allowed divided by sent; 1 without requests
	Rate    float64 `json:"rate"`    // allowed per second over the whole time
	Spent   Amount  `json:"spent"`

	LongestWait  Seconds `json:"longest_wait"`  // longest delay
	LongestRetry Seconds `json:"longest_retry"` // longest finite retry_after of a denial
	Never        int     `json:"never"`         // denials with a null retry_after
	Unserved     int     `json:"unserved"`      // retries due after the end
	MaxAtOnce    int     `json:"crowd"`         // most requests at one instant

	// Peak is the most tokens spent by requests that started within one Window. PeakAt is its time.
	Peak   Amount  `json:"peak"`
	PeakAt Seconds `json:"peak_at"`
}

// A PlayFirstDenial is the first denied request.
type PlayFirstDenial struct {
	Request    int     `json:"request"` // the first is 1
	At         Seconds `json:"at"`
	RetryAfter Seconds `json:"retry_after"`
	Before     int     `json:"before"` // requests allowed before it
}

// A PlayDecision is one request with its decision. MarshalJSON documents its JSON.
type PlayDecision struct {
	At         bucket.Instant // from the start
	Allowed    bool
	RetryAfter time.Duration
	Remaining  int64 // whole tokens left
	Wait       time.Duration
	Before     bucket.Tokens // level before the request; negative if the bucket owes
	Level      bucket.Tokens // level after the request
	Cost       bucket.Tokens
	Client     int // client number, from 0
	Try        int // attempt number, from 1
}

// MarshalJSON implements [encoding/json.Marshaler]. It writes a list of ten numbers: at, allowed (0 or 1),
// retry_after (null for never), remaining, wait, before, level, cost, client, try.
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

// PlayPresets is the response of GET /v1/play/presets: examples, and the bounds of a play.
type PlayPresets struct {
	Presets    []PlayPreset `json:"presets"`
	Algorithms []string     `json:"algorithms"`
	Shapes     []string     `json:"shapes"`
	Bounds     PlayBounds   `json:"bounds"`
}

// PlayBounds holds the maximum values for a [Play]. Body is in bytes.
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
	Text  string `json:"text"` // what to look for

	// Source is the article that the example comes from, or null.
	Source *PlaySource `json:"source"`

	Input Play `json:"input"`
}

// A PlaySource is an article on rate limiting.
type PlaySource struct {
	Title string `json:"title"`

	// Note describes how the article's numbers differ. It may be empty.
	Note string `json:"note,omitempty"`
}
