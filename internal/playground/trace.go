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

// maxShownLines bounds the lines of a trace that are reported one by one.
const maxShownLines = 5

// trace adds the requests of a pasted trace: their times, and the cost of each. The first one
// comes at the beginning of the phase, which ends at the first whole second after the last.
func (p *phase) trace(field string, tl *timeline, ms *Mistakes) {
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
		ms.add(field, example, "%d lines in all cannot be read", bad)
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

// parseJSON reads a line of a trace as mete replay has them.
func parseJSON(line string) (a arrival, err error) {
	var fields struct {
		At   json.Number  `json:"at"`
		Cost *json.Number `json:"cost"`
	}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		return a, errors.New("it is not a JSON object whose at and cost are numbers")
	}
	if fields.At == "" {
		return a, errors.New("it does not say at, the second the request came in")
	}
	if a.at, err = parseSeconds(string(fields.At)); err != nil {
		return a, err
	}
	if fields.Cost != nil {
		if a.cost, err = bucket.ParseTokens(string(*fields.Cost)); err != nil || a.cost == 0 {
			return a, fmt.Errorf("the cost %.40s is not a number of tokens above 0 with at most three decimals", *fields.Cost)
		}
	}
	return a, nil
}

// logTime is how access logs write times.
const logTime = "02/Jan/2006:15:04:05 -0700"

// parseLog finds the time in a line of an access log: the first brackets that hold
// one. Servers write a name that the client has sent in front of it.
func parseLog(line string) (a arrival, err error) {
	for rest := line; ; {
		i := strings.IndexByte(rest, '[')
		if i < 0 || len(rest) < i+2+len(logTime) {
			return a, errors.New("it is no access log line: it has no time such as [21/Nov/2026:12:00:00 +0000]")
		}
		rest = rest[i+1:]
		if at, err := time.Parse(logTime, rest[:len(logTime)]); err == nil && rest[len(logTime)] == ']' && at.Unix() >= 0 {
			return arrival{at: bucket.At(at)}, nil
		}
	}
}

// maxAt is the first instant that no trace can have: times end in the year 2255.
const maxAt = 1 << 53

// parseSeconds reads a JSON number of seconds, at least 0. Digits behind the sixth
// decimal are cut off.
func parseSeconds(text string) (bucket.Instant, error) {
	if i := strings.IndexByte(text, '.'); i >= 0 && len(text) > i+7 && !strings.ContainsAny(text, "eE") {
		text = text[:i+7]
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || s < 0 {
		return 0, fmt.Errorf("%.40s is not a number of seconds, at least 0", text)
	}
	micros := math.Round(s * float64(second)) // exact: a double holds every microsecond until then
	if micros >= maxAt {
		return 0, fmt.Errorf("%.40s s is too late: times end in the year 2255", text)
	}
	return bucket.Instant(micros), nil
}
