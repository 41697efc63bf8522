// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// maxShownLines bounds the invalid lines of a trace that are reported one by one.
const maxShownLines = 5

// addTrace adds the requests of a pasted trace. The earliest request arrives at the start of the phase, which ends at
// the first whole second after the last one.
func (p *phase) addTrace(field string, tl *timeline, ms *InputErrors) {
	const example = `paste lines of an access log, or JSON lines such as {"at": 0.5}`
	var read []arrival
	bad, number := 0, 0
	for line := range strings.Lines(p.Trace) {
		number++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		parse := parseLog
		if line[0] == '{' {
			parse = parseJSON
		}
		a, err := parse(line)
		if err != nil {
			if bad++; bad <= maxShownLines {
				ms.add(field, "correct the line, or remove it", "line %d: %v", number, err)
			}
			continue
		}
		if read = append(read, a); len(read) > MaxRequests {
			ms.add(field, "paste less", "there are more than %d requests", MaxRequests)
			return
		}
	}
	if bad > maxShownLines {
		ms.add(field, example, "%d lines are invalid in total", bad)
	}
	if bad == 0 && len(read) == 0 {
		ms.add(field, example, "the trace has no requests")
	}
	if bad > 0 || len(read) == 0 {
		return
	}
	byTime := func(a, b arrival) int { return cmp.Compare(a.at, b.at) }
	first, last := slices.MinFunc(read, byTime).at, slices.MaxFunc(read, byTime).at
	if last-first >= MaxSeconds*second {
		ms.add(field, "paste less", "the trace is longer than %d s, a day", MaxSeconds)
		return
	}
	for _, a := range read {
		if !tl.add(field, tl.end+a.at-first, a.cost, ms) {
			return
		}
	}
	tl.end += ((last-first)/second + 1) * second
}

// parseJSON parses a JSON line in the format of mete replay.
func parseJSON(line string) (a arrival, err error) {
	var fields struct {
		At   json.Number  `json:"at"`
		Cost *json.Number `json:"cost"`
	}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return a, errors.New("not a JSON object with numbers in at and cost")
	}
	if fields.At == "" {
		return a, errors.New("the field at is missing: the time of the request in seconds")
	}
	if a.at, err = parseSeconds(string(fields.At)); err != nil {
		return a, err
	}
	if fields.Cost != nil {
		if a.cost, err = bucket.ParseTokens(string(*fields.Cost)); err != nil || a.cost == 0 {
			return a, fmt.Errorf("the cost %.40s must be a number above 0, with at most three decimals", *fields.Cost)
		}
	}
	return a, nil
}

const logTime = "02/Jan/2006:15:04:05 -0700"

// parseLog returns the first time in brackets in a line of an access log. The user name in front of it comes from the
// client and may contain brackets.
func parseLog(line string) (a arrival, err error) {
	for rest := line; ; {
		i := strings.IndexByte(rest, '[')
		if i < 0 || len(rest) < i+2+len(logTime) {
			return a, errors.New("not an access log line: no time such as [21/Nov/2026:12:00:00 +0000]")
		}
		rest = rest[i+1:]
		if at, err := time.Parse(logTime, rest[:len(logTime)]); err == nil && rest[len(logTime)] == ']' && at.Unix() >= 0 {
			return arrival{at: bucket.At(at)}, nil
		}
	}
}

// maxAt is the first invalid time, in the year 2255.
const maxAt = 1 << 53

// parseSeconds parses a JSON number of seconds, at least 0. It drops digits after the sixth decimal.
func parseSeconds(text string) (bucket.Instant, error) {
	if i := strings.IndexByte(text, '.'); i >= 0 && len(text) > i+7 && !strings.ContainsAny(text, "eE") {
		text = text[:i+7]
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || s < 0 {
		return 0, fmt.Errorf("%.40s is not a number of seconds of at least 0", text)
	}
	micros := math.Round(s * float64(second)) // exact: a float64 holds every microsecond below maxAt
	if micros >= maxAt {
		return 0, fmt.Errorf("%.40s s is too large: the last valid time is in the year 2255", text)
	}
	return bucket.Instant(micros), nil
}
