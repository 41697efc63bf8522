// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

const (
	second = bucket.Instant(time.Second / time.Microsecond)

	minPhase = time.Millisecond // the resolution of lengths
)

// An arrival is the first attempt of a request.
type arrival struct {
	at   bucket.Instant // since the start
	cost bucket.Tokens  // 0: the cost of the rule
}

type timeline struct {
	arrivals   []arrival // in the order of time
	end        bucket.Instant
	overflowed bool // too many requests were generated, and the error is reported
}

// shapes lists the fields of each shape, without shape itself.
var shapes = map[string][]string{
	"steady":  {"seconds", "rate"},
	"burst":   {"seconds", "count", "every"},
	"poisson": {"seconds", "rate", "seed"},
	"pause":   {"seconds"},
	"trace":   {"trace"},
}

// Shapes holds the shapes of a phase in their order on the page.
var Shapes = []string{"steady", "burst", "poisson", "pause", "trace"}

// newTimeline computes the arrivals and adds errors to ms.
func newTimeline(t *api.PlayTraffic, ms *InputErrors) timeline {
	var tl timeline
	switch n := len(t.Phases); {
	case n == 0:
		ms.add("/traffic/phases", `add a phase such as {"shape": "steady", "rate": 5, "seconds": 10}`, "the traffic has no phases")
	case n > MaxPhases:
		ms.add("/traffic/phases", "remove some", "%d phases are more than %d", n, MaxPhases)
		return tl
	}
	for i := range t.Phases {
		before := len(*ms)
		(*phase)(&t.Phases[i]).addArrivals(fmt.Sprintf("/traffic/phases/%d", i), &tl, ms)
		if len(*ms) > before {
			return tl // later phases would start at a wrong time
		}
	}
	if tl.end > MaxSeconds*second {
		ms.add(fmt.Sprintf("/traffic/phases/%d", len(t.Phases)-1), "shorten a phase", "the traffic lasts longer than a day (%d s)", MaxSeconds)
	}
	addHandRequests(t, &tl, ms)
	slices.SortStableFunc(tl.arrivals, func(a, b arrival) int { return int(a.at - b.at) })
	return tl
}

func addHandRequests(t *api.PlayTraffic, tl *timeline, ms *InputErrors) {
	if len(t.Hand) > MaxHand {
		ms.add("/traffic/hand", "remove some", "%d requests by hand are more than %d", len(t.Hand), MaxHand)
		return
	}
	for i, n := range t.Hand {
		at, err := parseSeconds(string(n))
		field := fmt.Sprintf("/traffic/hand/%d", i)
		switch {
		case err != nil:
			ms.add(field, "", "%v", err)
		case at >= tl.end:
			ms.add(field, "send it earlier, or make the traffic longer", "%s s is not before the end of the traffic", n)
		default:
			tl.add(field, at, 0, ms)
		}
	}
}

// add adds an arrival. It returns false if there are too many.
func (tl *timeline) add(field string, at bucket.Instant, cost bucket.Tokens, ms *InputErrors) bool {
	if len(tl.arrivals) >= MaxRequests {
		if !tl.overflowed {
			ms.add(field, "lower it, or shorten the traffic", "more than %d requests", MaxRequests)
			tl.overflowed = true
		}
		return false
	}
	tl.arrivals = append(tl.arrivals, arrival{at, cost})
	return true
}

type phase api.PlayPhase

// addArrivals adds the arrivals of the phase and moves the end of the timeline.
func (p *phase) addArrivals(field string, tl *timeline, ms *InputErrors) {
	fields, ok := shapes[p.Shape]
	if !ok {
		ms.add(field+"/shape", "use one of "+strings.Join(Shapes, ", "), "unknown shape %.40q", p.Shape)
		return
	}
	if !p.checkFields(field, fields, ms) {
		return
	}
	if p.Shape == "trace" {
		p.addTrace(field+"/trace", tl, ms)
		return
	}
	length, ok := parsePositive(p.Seconds, field+"/seconds", "its length in seconds", ms)
	if !ok {
		return
	}
	if length > MaxSeconds*bucket.Token {
		ms.add(field+"/seconds", "shorten it", "a phase must not be longer than a day (%d s)", MaxSeconds)
		return
	}
	end := tl.end + bucket.Instant(length)*bucket.Instant(minPhase/time.Microsecond)
	switch p.Shape {
	case "steady":
		p.addSteady(field, tl, end, ms)
	case "burst":
		p.addBursts(field, tl, end, ms)
	case "poisson":
		p.addPoisson(field, tl, end, ms)
	}
	tl.end = end
}

// checkFields reports whether p sets only fields of its shape.
func (p *phase) checkFields(field string, fields []string, ms *InputErrors) bool {
	var set map[string]json.RawMessage
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	if err != nil { // an invalid json.Number
		ms.add(field, "write numbers like 10 or 0.5", "invalid number")
		return false
	}
	before := len(*ms)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name != "shape" && !slices.Contains(fields, name) {
			ms.add(field+"/"+name, "remove it, or choose another shape", "the shape %s has no field %s", p.Shape, name)
		}
	}
	return len(*ms) == before
}

// parsePositive parses a decimal above 0, in thousandths.
func parsePositive(n json.Number, field, what string, ms *InputErrors) (bucket.Tokens, bool) {
	if n == "" {
		ms.add(field, "set "+what, "the number is missing")
		return 0, false
	}
	v, err := bucket.ParseTokens(string(n))
	if err != nil || v == 0 {
		ms.add(field, "set "+what, "%.40s must be above 0, with at most three decimals", n)
		return 0, false
	}
	return v, true
}

// addSteady spaces requests evenly from the start of the phase, with times rounded down to microseconds.
func (p *phase) addSteady(field string, tl *timeline, end bucket.Instant, ms *InputErrors) {
	rate, ok := parsePositive(p.Rate, field+"/rate", "the requests per second", ms)
	if !ok || !checkRate(rate, field+"/rate", ms) {
		return
	}
	for i, begin := int64(0), tl.end; ; i++ {
		at := begin + bucket.Instant(i*int64(second)*int64(bucket.Token)/int64(rate))
		if at >= end || !tl.add(field+"/rate", at, 0, ms) {
			return
		}
	}
}

// checkRate rejects rates above one request per microsecond.
func checkRate(rate bucket.Tokens, field string, ms *InputErrors) bool {
	if most := bucket.Tokens(second) * bucket.Token; rate > most {
		ms.add(field, "lower it", "the rate must not be above %v requests per second, one per microsecond", most)
		return false
	}
	return true
}

// addBursts sends Count requests at the start of the phase, and again after each Every if it is set.
func (p *phase) addBursts(field string, tl *timeline, end bucket.Instant, ms *InputErrors) {
	if p.Count < 1 || p.Count > MaxRequests {
		ms.add(field+"/count", "set the number of requests that arrive at once", "a burst has 1 to %d requests", MaxRequests)
		return
	}
	every := end - tl.end
	if p.Every != "" {
		d, err := bucket.ParseDuration(p.Every)
		if err != nil || d < minPhase || d%time.Microsecond != 0 {
			ms.add(field+"/every", `use a duration such as "1s" or "250ms", or omit it`, "every must be at least %v and whole microseconds", minPhase)
			return
		}
		every = bucket.Instant(d / time.Microsecond)
	}
	for at := tl.end; at < end; at += every {
		for range p.Count {
			if !tl.add(field+"/count", at, 0, ms) {
				return
			}
		}
	}
}

// addPoisson draws the time between requests from an exponential distribution with the mean 1/rate: −ln(1 − u)/rate,
// rounded down to microseconds. The upper 53 bits of the next output of PCG-DXSM, seeded with Seed and 0, are the
// fraction u.
func (p *phase) addPoisson(field string, tl *timeline, end bucket.Instant, ms *InputErrors) {
	rate, ok := parsePositive(p.Rate, field+"/rate", "the average requests per second", ms)
	if !ok || !checkRate(rate, field+"/rate", ms) {
		return
	}
	if p.Seed < 0 || p.Seed > MaxSeed {
		ms.add(field+"/seed", "", "a seed is a whole number from 0 to 2^53 − 1")
		return
	}
	draw := rand.NewPCG(uint64(p.Seed), 0)
	mean := float64(second) * float64(bucket.Token) / float64(rate)
	for at := tl.end; ; {
		u := float64(draw.Uint64()>>11) / (1 << 53)
		gap := -math.Log(1-u) * mean
		if gap >= float64(end-at) {
			return
		}
		at += bucket.Instant(gap)
		if !tl.add(field+"/rate", at, 0, ms) {
			return
		}
	}
}
