// SPDX-License-Identifier: Apache-2.0

package vectors

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// rawLimit is a limit in JSON.
type rawLimit struct {
	Algorithm   string  `json:"algorithm"`
	Capacity    *string `json:"capacity"`
	Rate        string  `json:"rate"`
	MaxReserved *string `json:"max_reserved"`
	Queue       *string `json:"queue"`
	Anchor      string  `json:"anchor"`
	Start       *string `json:"start"`
	Key         string  `json:"key"`

	Calendar *rawCalendar `json:"calendar"`
	Penalty  *rawPenalty  `json:"penalty"`

	// The compiled limit, for implementations that do not parse the text.
	N      int64   `json:"n"`
	P      int64   `json:"p"`
	Offset int64   `json:"offset"`
	Starts []int64 `json:"starts"`
}

type rawCalendar struct {
	Window string `json:"window"`
	Zone   string `json:"zone"`
	Month  int    `json:"month"`
	Day    int    `json:"day"`
	Start  string `json:"start"`
}

func (r *rawCalendar) calendar() (bucket.Calendar, error) {
	window, ok := bucket.ParseCalendarWindow(r.Window)
	start, err := time.Parse("15:04", r.Start)
	if !ok || err != nil {
		return bucket.Calendar{}, fmt.Errorf("invalid calendar %+v", *r)
	}
	at := time.Duration(start.Hour())*time.Hour + time.Duration(start.Minute())*time.Minute
	return bucket.Calendar{Window: window, Zone: r.Zone, Month: time.Month(r.Month), Day: r.Day, Start: at}, nil
}

// rawPenalty has lengths in microseconds, and the factor in thousandths.
type rawPenalty struct {
	First  int64 `json:"first"`
	Most   int64 `json:"most"`
	Factor int64 `json:"factor"`
}

var algorithms = map[string]bucket.Algorithm{
	"": bucket.AlgorithmContinuous, "stepped": bucket.AlgorithmStepped,
	"sliding_window": bucket.AlgorithmSlidingWindow, "sliding_log": bucket.AlgorithmSlidingLog,
}

var anchors = map[string]bucket.Anchor{
	"": bucket.AnchorEpoch, "epoch": bucket.AnchorEpoch, "key": bucket.AnchorKey, "first": bucket.AnchorFirst,
	"calendar": bucket.AnchorCalendar,
}

// spec parses the limit. After an error the spec is zero, which does not compile either.
func (r rawLimit) spec() (bucket.Spec, error) {
	var spec bucket.Spec
	var ok bool
	if spec.Algorithm, ok = algorithms[r.Algorithm]; !ok {
		return bucket.Spec{}, fmt.Errorf("unknown algorithm %q", r.Algorithm)
	}
	if spec.Anchor, ok = anchors[r.Anchor]; !ok {
		return bucket.Spec{}, fmt.Errorf("unknown anchor %q", r.Anchor)
	}
	var most bucket.Tokens
	for _, amount := range []struct {
		text *string
		to   *bucket.Tokens
	}{{r.Capacity, &spec.Capacity}, {r.MaxReserved, &most}, {r.Queue, &spec.Queue}} {
		if amount.text == nil {
			continue
		}
		var err error
		if *amount.to, err = bucket.ParseTokens(*amount.text); err != nil {
			return bucket.Spec{}, err
		}
	}
	if r.MaxReserved != nil {
		spec.MaxReserved = &most
	}
	var err error
	if spec.Rate, err = bucket.ParseRate(r.Rate); err != nil {
		return bucket.Spec{}, err
	}
	if r.Start != nil {
		if spec.Start, err = bucket.ParseDuration(*r.Start); err != nil {
			return bucket.Spec{}, err
		}
	}
	if r.Calendar != nil {
		if spec.Calendar, err = r.Calendar.calendar(); err != nil {
			return bucket.Spec{}, err
		}
	}
	return spec, nil
}

// charge compiles the spec, compares the refill with the recorded one, and returns the charge for the limit's key.
func (r rawLimit) charge(spec bucket.Spec) (Charge, error) {
	limit, _, err := spec.Compile()
	if err != nil {
		return Charge{}, err
	}
	if n, p := limit.Refill(); int64(n) != r.N || p != r.P {
		return Charge{}, fmt.Errorf("rate %s: refill is %d thousandths every %d µs, want %d every %d", r.Rate, int64(n), p, r.N, r.P)
	}
	charge := Charge{Spec: spec, Key: r.Key, Offset: r.Offset, Starts: r.Starts, Limit: limit.ForKey(r.Key)}
	if p := r.Penalty; p != nil {
		charge.Penalty, err = bucket.NewPenalty(micros(p.First), micros(p.Most), bucket.Tokens(p.Factor))
	}
	return charge, err
}
