// SPDX-License-Identifier: Apache-2.0

// Package dialect implements two settings of rules for responses: the header fields that report the limits, and the
// jitter of the waits of denied clients.
package dialect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Set is a set of header fields that report a limit. The zero Set uses the server's setting.
type Set uint8

// The dialects. None cannot be combined with another.
const (
	Draft11 Set = 1 << iota // RateLimit-Policy and RateLimit
	Legacy                  // RateLimit-Limit, -Remaining and -Reset
	X                       // X-RateLimit-Limit, -Remaining and -Reset
	None                    // no fields
)

// Names are the names of the dialects, in the order of the bits.
var Names = [...]string{"draft-11", "legacy", "x", "none"}

func parseOne(name string) (Set, error) {
	for i, known := range Names {
		if name == known {
			return 1 << i, nil
		}
	}
	return 0, fmt.Errorf("unknown dialect %q: use draft-11, legacy, x or none", name)
}

// Parse parses one or more names as a set. Duplicates are allowed.
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
		return 0, errors.New("the list of dialects is empty; use none to send no header fields")
	case all.Has(None) && all != None:
		return 0, errors.New("dialect none cannot be combined with other dialects")
	}
	return all, nil
}

// Has reports whether d and other have a dialect in common.
func (d Set) Has(other Set) bool { return d&other != 0 }

// String lists the dialects, as in "draft-11, x". It is empty for the zero Set.
func (d Set) String() string {
	var names []string
	for i, name := range Names {
		if d.Has(1 << i) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// MaxJitterPercent bounds the share that is added to a wait.
const MaxJitterPercent = 100

// Jitter is the spread of the Retry-After of denied clients: 0 to max(1 s, N%) of the wait, in whole seconds. The
// zero Jitter uses the server's setting.
type Jitter struct{ percentAndOne uint8 }

// NewJitter returns the Jitter for a percentage from 0 (off) to [MaxJitterPercent].
func NewJitter(percent int) (Jitter, error) {
	if percent < 0 || percent > MaxJitterPercent {
		return Jitter{}, fmt.Errorf("jitter %d%%: must be from 0%% to %d%% of the wait", percent, MaxJitterPercent)
	}
	return Jitter{uint8(percent) + 1}, nil
}

// ParseJitter parses "0" or a whole percentage, such as "50%".
func ParseJitter(text string) (Jitter, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || !isPercentage && text != "0" {
		return Jitter{}, fmt.Errorf("jitter %q: write a whole percentage of the wait, such as \"50%%\", or 0 for none", text)
	}
	return NewJitter(int(percent))
}

// Percent returns the percentage. ok is false for the zero Jitter.
func (j Jitter) Percent() (percent int, ok bool) {
	if j.percentAndOne == 0 {
		return 0, false
	}
	return int(j.percentAndOne) - 1, true
}

// String returns the percentage in the form of [ParseJitter]. It is empty for the zero Jitter.
func (j Jitter) String() string {
	percent, ok := j.Percent()
	if !ok {
		return ""
	}
	return strconv.Itoa(percent) + "%"
}
