// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// parseState reads a state as take.lua writes it; "-" is that of a full bucket.
func parseState(text string) (bucket.State, error) {
	if text == "-" {
		return bucket.State{}, nil
	}
	spent, rest, ok := strings.Cut(text, "/")
	if !ok {
		return parseWindow(text)
	}
	unit, asOf, _ := strings.Cut(rest, "@")
	var s bucket.State
	var errs [3]error
	s.Spent, errs[0] = strconv.ParseInt(spent, 10, 64)
	s.Unit, errs[1] = strconv.ParseInt(unit, 10, 64)
	at, err := strconv.ParseInt(asOf, 10, 64)
	s.AsOf, errs[2] = bucket.Instant(at), err
	if errs != [3]error{} {
		return bucket.State{}, errAnswer("no state", text)
	}
	return s, nil
}

// parseWindow reads cur+prev~length@start; and of a log, which has been read
// whole since its limit has become another, the sum and the newest instant.
func parseWindow(text string) (bucket.State, error) {
	cur, rest, _ := strings.Cut(text, "+")
	prev, rest, _ := strings.Cut(rest, "~")
	length, start, _ := strings.Cut(rest, "@")
	var v [4]int64
	for i, s := range []string{cur, prev, length, start} {
		var err error
		if v[i], err = strconv.ParseInt(s, 10, 64); err != nil {
			return bucket.State{}, errAnswer("no state", text)
		}
	}
	return bucket.State{Spent: v[0] + v[1], Prev: v[1], Unit: -v[2], AsOf: bucket.Instant(v[3])}, nil
}

// parseLogVerdict reads L, what a log counts, how far its instant lies ahead, and
// the wait: −1 is never.
func parseLogVerdict(text string) (bucket.Verdict, error) {
	var v [3]int64
	fields := strings.Split(strings.TrimPrefix(text, "L"), ",")
	if len(fields) != len(v) {
		return bucket.Verdict{}, errAnswer("no log", text)
	}
	for i, f := range fields {
		var err error
		if v[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return bucket.Verdict{}, errAnswer("no log", text)
		}
	}
	wait := bucket.Never
	if v[2] >= 0 {
		wait = time.Duration(v[2]) * time.Microsecond
	}
	return bucket.LogVerdict(bucket.Tokens(v[0]), v[1], wait), nil
}
