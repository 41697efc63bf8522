// SPDX-License-Identifier: Apache-2.0

// Package dialect has two settings of a rule for its answers: the header fields that show its
// limits, and the jitter of the waits of denied clients.
package dialect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Set is a set of header fields that show a limit. The zero Set leaves the fields to the
// configuration.
type Set uint8

// The dialects. None goes with no other.
const (
	Draft11 Set = 1 << iota // RateLimit-Policy and RateLimit
	Legacy                  // RateLimit-Limit, -Remaining and -Reset
	X                       // X-RateLimit-Limit, -Remaining and -Reset
	None                    // no field at all
)

// Names are in the order of the bits.
var Names = [...]string{"draft-11", "legacy", "x", "none"}

// parseOne reads the name of one dialect: draft-11, legacy, x or none.
func parseOne(name string) (Set, error) {
	for i, known := range Names {
		if name == known {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("unknown dialect %q: known are draft-11, legacy, x and none", name)
}

// Parse reads names, which must not be empty, as a set. A name may be
// there twice.
func Parse(names ...string) (Set, error) {
	var all Set
	for _, name := range names {
		d, err := parseOne(name)
		if err != nil {
			return 0, err
		}
		all |= d
	}
	switch {
	case all == 0:
		return 0, errors.New("there is no dialect; write none to send no fields")
	case all.Has(None) && all != None:
		return 0, errors.New("dialect none goes with no other")
	}
	return all, nil
}

// Has reports whether d and other have a dialect in common.
func (d Set) Has(other Set) bool { return d&other != 0 }

// String lists the dialects, as in "draft-11, x". Of zero it is empty.
func (d Set) String() string {
	var names []string
	for i, name := range Names {
		if d.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// MaxJitterPercent bounds what is added to a wait. More is refused.
const MaxJitterPercent = 100

// Jitter is how far the Retry-After of denied clients is spread: by 0 to
// max(1 s, N %) of the wait, in whole seconds. The zero Jitter leaves the spread to the
// configuration.
type Jitter struct{ percentAndOne uint8 }

// JitterOf returns the Jitter of a percentage from 0, which turns it off, to
// [MaxJitterPercent].
func JitterOf(percent int) (Jitter, error) {
	if percent < 0 || percent > MaxJitterPercent {
		return Jitter{}, fmt.Errorf("jitter %d%%: must be from 0%% to %d%% of the wait", percent, MaxJitterPercent)
	}
	return Jitter{uint8(percent) + 1}, nil
}

// ParseJitter reads "0" or a whole percentage, such as "50%".
func ParseJitter(text string) (Jitter, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || !isPercentage && text != "0" {
		return Jitter{}, fmt.Errorf("jitter %q: write a share of the wait in whole percent, such as \"50%%\", or 0 for none", text)
	}
	return JitterOf(int(percent))
}

// Percent returns the percentage, and whether there is one: of the zero Jitter it
// is 0, false.
func (j Jitter) Percent() (percent int, ok bool) {
	if j.percentAndOne == 0 {
		return 0, false
	}
	return int(j.percentAndOne) - 1, true
}

// String returns the percentage as [ParseJitter] reads it. Of the zero Jitter it
// is empty.
func (j Jitter) String() string {
	percent, ok := j.Percent()
	if !ok {
		return ""
	}
	return strconv.Itoa(percent) + "%"
}
