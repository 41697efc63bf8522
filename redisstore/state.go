// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
)

// packedVersion begins a row with one token bucket. take.lua answers rows of other versions in a different form.
const packedVersion = "2:"

// cutPacked reads a row of version 2 (see take.lua) from the start of text, and returns the rest.
func cutPacked(text string) (s bucket.State, rest string, err error) {
	row, ok := strings.CutPrefix(text, packedVersion)
	_, numbers, found := strings.Cut(row, " ") // the script has compared the limit before the space
	if !ok || !found || len(numbers) < 16 {
		return s, "", newAnswerError("invalid row", text)
	}
	spent, whole := parseWhole(numbers[:8])
	at, alsoWhole := parseWhole(numbers[8:16])
	if !whole || !alsoWhole || spent < 0 {
		return s, "", newAnswerError("invalid row", text)
	}
	return bucket.State{Unit: 1, Spent: spent, AsOf: bucket.Instant(at)}, numbers[16:], nil
}

func parseWhole(bytes string) (int64, bool) {
	v := math.Float64frombits(binary.LittleEndian.Uint64([]byte(bytes)))
	return int64(v), v == math.Trunc(v) && math.Abs(v) <= maxUnits
}

// parseState reads spent@asof in the form of take.lua for a limit of this unit, or cur+prev@start of a sliding
// window.
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
		return bucket.State{}, newAnswerError("invalid state", text)
	}
	return s, nil
}

// parseLogVerdict reads L and three numbers: the log's sum, the distance of its instant from now, and the wait. A
// wait of -1 is never.
func parseLogVerdict(text string) (bucket.Verdict, error) {
	var v [3]int64
	if !parseNumbers(v[:], strings.TrimPrefix(text, "L")) {
		return bucket.Verdict{}, newAnswerError("invalid log", text)
	}
	return bucket.LogVerdict(bucket.Tokens(v[0]), v[1], waitOf(v[2])), nil
}

// parseSlotsVerdict reads S and four numbers: the held slots, the times until the first and the last of them end, and the
// wait.
func parseSlotsVerdict(text string) (bucket.Verdict, error) {
	var v [4]int64
	if !parseNumbers(v[:], strings.TrimPrefix(text, "S")) || v[0] < 0 || v[0] > 2*bucket.MaxSlots {
		return bucket.Verdict{}, newAnswerError("invalid slots", text)
	}
	next, last := time.Duration(v[1])*time.Microsecond, time.Duration(v[2])*time.Microsecond
	return bucket.SlotsVerdict(int(v[0]), next, last, waitOf(v[3])), nil
}

// parseNumbers reads numbers that are separated by commas, as many as v holds.
func parseNumbers(v []int64, text string) bool {
	fields := strings.Split(text, ",")
	if len(fields) != len(v) {
		return false
	}
	for i, f := range fields {
		var err error
		if v[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return false
		}
	}
	return true
}

// waitOf returns a wait in microseconds as a duration: -1 is never.
func waitOf(us int64) time.Duration {
	if us < 0 {
		return bucket.Never
	}
	return time.Duration(us) * time.Microsecond
}
