// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// rowVersion begins each stored value. A value of another version is an error.
const rowVersion = "1:"

// parseState reads spent@asof as take.lua shows it, for a limit of this unit, and
// cur+prev@start of a sliding window.
func parseState(text string, unit int64) (bucket.State, error) {
	spent, asOf, _ := strings.Cut(text, "@")
	spent, prev, window := strings.Cut(spent, "+")
	s := bucket.State{Unit: unit}
	var errs [3]error
	s.Spent, errs[0] = strconv.ParseInt(spent, 10, 64)
	if window {
		s.Prev, errs[1] = strconv.ParseInt(prev, 10, 64)
		s.Spent += s.Prev
	}
	at, err := strconv.ParseInt(asOf, 10, 64)
	s.AsOf, errs[2] = bucket.Instant(at), err
	if errs != [3]error{} {
		return bucket.State{}, errAnswer("no state", text)
	}
	return s, nil
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
