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

	// minPhase is the shortest a phase can be.
	minPhase = time.Millisecond
)

// An arrival is a request that comes, at an instant counted from the beginning.
type arrival struct {
	at   bucket.Instant
	cost bucket.Tokens // 0: the cost of the rule
}

// timeline is traffic, worked out.
type timeline struct {
	arrivals []arrival // in order of time
	end      bucket.Instant
	drawn    bool // too much was drawn, which is reported once
}

// shapes are the fields of each shape of phase, beside shape itself.
var shapes = map[string][]string{
	"steady":  {"seconds", "rate"},
	"burst":   {"seconds", "count", "every"},
	"poisson": {"seconds", "rate", "seed"},
	"pause":   {"seconds"},
	"trace":   {"trace"},
}

// Shapes are the names of the shapes of a phase, in the order of the page.
var Shapes = []string{"steady", "burst", "poisson", "pause", "trace"}

// timelineOf computes the arrivals, and adds errors to ms.
func timelineOf(t *api.PlayTraffic, ms *Mistakes) timeline {
	var tl timeline
	switch n := len(t.Phases); {
	case n == 0:
		ms.add("/traffic/phases", `{"shape": "steady", "rate": 5, "seconds": 10}, for example`, "there is no traffic")
	case n > MaxPhases:
		ms.add("/traffic/phases", "remove some", "%d phases are more than %d", n, MaxPhases)
		return tl
	}
	for i := range t.Phases {
		before := len(*ms)
		(*phase)(&t.Phases[i]).play(fmt.Sprintf("/traffic/phases/%d", i), &tl, ms)
		if len(*ms) > before {
			return tl // what follows would begin at a wrong time
		}
	}
	if tl.end > MaxSeconds*second {
		ms.add(fmt.Sprintf("/traffic/phases/%d", len(t.Phases)-1), "shorten a phase", "the traffic lasts longer than %d s, a day", MaxSeconds)
	}
	sendByHand(t, &tl, ms)
	slices.SortStableFunc(tl.arrivals, func(a, b arrival) int { return int(a.at - b.at) })
	return tl
}

// sendByHand adds single requests.
func sendByHand(t *api.PlayTraffic, tl *timeline, ms *Mistakes) {
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
			ms.add(field, "send it earlier, or make the traffic longer", "%s s is after the end", n)
		default:
			tl.add(field, at, 0, ms)
		}
	}
}

// add adds an arrival, and is false where there is no room.
func (tl *timeline) add(field string, at bucket.Instant, cost bucket.Tokens, ms *Mistakes) bool {
	if len(tl.arrivals) >= MaxRequests {
		if !tl.drawn {
			ms.add(field, "lower it, or shorten the traffic", "there would be more than %d requests", MaxRequests)
			tl.drawn = true
		}
		return false
	}
	tl.arrivals = append(tl.arrivals, arrival{at, cost})
	return true
}

// A phase is one part of the traffic.
type phase api.PlayPhase

// play adds the arrivals of one phase, and its time.
func (p *phase) play(field string, tl *timeline, ms *Mistakes) {
	fields, ok := shapes[p.Shape]
	if !ok {
		ms.add(field+"/shape", "say one of "+strings.Join(Shapes, ", "), "there is no shape %.40q", p.Shape)
		return
	}
	if !p.hasOnly(field, fields, ms) {
		return
	}
	if p.Shape == "trace" {
		p.trace(field+"/trace", tl, ms)
		return
	}
	length, ok := positive(p.Seconds, field+"/seconds", "how many seconds it lasts", ms)
	if !ok {
		return
	}
	if length > MaxSeconds*bucket.Token {
		ms.add(field+"/seconds", "shorten it", "a phase cannot last longer than %d s, a day", MaxSeconds)
		return
	}
	end := tl.end + bucket.Instant(length)*bucket.Instant(minPhase/time.Microsecond)
	switch p.Shape {
	case "steady":
		p.steady(field, tl, end, ms)
	case "burst":
		p.burst(field, tl, end, ms)
	case "poisson":
		p.poisson(field, tl, end, ms)
	}
	tl.end = end
}

// hasOnly reports whether p sets no field that its shape does not have.
func (p *phase) hasOnly(field string, fields []string, ms *Mistakes) bool {
	var set map[string]json.RawMessage
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &set)
	}
	if err != nil { // a json.Number that is not a number
		ms.add(field, "write numbers as in 10 or 0.5", "a number cannot be read")
		return false
	}
	before := len(*ms)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if name != "shape" && !slices.Contains(fields, name) {
			ms.add(field+"/"+name, "remove it, or choose another shape", "the shape %s has no %s", p.Shape, name)
		}
	}
	return len(*ms) == before
}

// positive reads a decimal above 0, in thousandths.
func positive(n json.Number, field, what string, ms *Mistakes) (bucket.Tokens, bool) {
	if n == "" {
		ms.add(field, "say "+what, "a number is missing")
		return 0, false
	}
	v, err := bucket.ParseTokens(string(n))
	if err != nil || v == 0 {
		ms.add(field, "say "+what, "%.40s must be above 0, and have at most three decimals", n)
		return 0, false
	}
	return v, true
}

// steady spaces requests evenly: the first comes at the beginning, and each at its
// own microsecond, rounded down.
func (p *phase) steady(field string, tl *timeline, end bucket.Instant, ms *Mistakes) {
	rate, ok := positive(p.Rate, field+"/rate", "how many requests come a second", ms)
	if !ok || !plausible(rate, field+"/rate", ms) {
		return
	}
	for i, begin := int64(0), tl.end; ; i++ {
		at := begin + bucket.Instant(i*int64(second)*int64(bucket.Token)/int64(rate))
		if at >= end || !tl.add(field+"/rate", at, 0, ms) {
			return
		}
	}
}

// plausible refuses rates that no phase has room for.
func plausible(rate bucket.Tokens, field string, ms *Mistakes) bool {
	if most := bucket.Tokens(second) * bucket.Token; rate > most {
		ms.add(field, "lower it", "a rate above %v requests a second is finer than time is", most)
		return false
	}
	return true
}

// burst sends Count requests at once, at the beginning and, where it says Every, that
// long after each other.
func (p *phase) burst(field string, tl *timeline, end bucket.Instant, ms *Mistakes) {
	if p.Count < 1 || p.Count > MaxRequests {
		ms.add(field+"/count", "say how many requests come at once", "a burst has 1 to %d requests", MaxRequests)
		return
	}
	every := end - tl.end
	if p.Every != "" {
		d, err := bucket.ParseDuration(p.Every)
		if err != nil || d < minPhase || d%time.Microsecond != 0 {
			ms.add(field+"/every", `say a duration such as "1s" or "250ms", or leave it out`, "every must be at least %v, and whole microseconds", minPhase)
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

// poisson draws the time from each request to the next from an exponential
// distribution with the mean 1/rate: −ln(1 − u)/rate, in microseconds rounded down. u
// are the upper 53 bits of what PCG-DXSM, seeded with Seed and 0, draws next, as a
// fraction.
func (p *phase) poisson(field string, tl *timeline, end bucket.Instant, ms *Mistakes) {
	rate, ok := positive(p.Rate, field+"/rate", "how many requests come a second on average", ms)
	if !ok || !plausible(rate, field+"/rate", ms) {
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
