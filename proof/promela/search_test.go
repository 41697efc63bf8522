// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// incomplete lists what the search prints if it has not seen all states, or not exactly.
var incomplete = []string{"max search depth too small", "reached -DMEMLIM bound", "hash-compact", "Bit statespace", "out of memory", "aborting"}

// parseSearch reads the output of a search. It returns an error unless the search was complete or has found a violation.
func parseSearch(output string) (states int, broken string, err error) {
	count := errorCount.FindStringSubmatch(output)
	if count == nil {
		return 0, "", errors.New("the search printed no result")
	}
	stored := stateCount.FindStringSubmatch(output)
	if stored == nil {
		return 0, "", errors.New("the search printed no number of states")
	}
	number, err := strconv.ParseFloat(stored[1], 64)
	if err != nil {
		return 0, "", fmt.Errorf("states: %w", err)
	}
	states = int(number)
	if count[1] != "0" {
		v := violation.FindStringSubmatch(output)
		if v == nil {
			return states, "", errors.New("the search found an unknown error")
		}
		return states, v[1] + v[2], nil
	}
	for _, text := range incomplete {
		if strings.Contains(output, text) {
			return states, "", fmt.Errorf("the search is incomplete: %s", text)
		}
	}
	if !strings.Contains(output, "Full statespace search for:") || strings.Contains(output, "Search not completed") {
		return states, "", errors.New("the search is incomplete")
	}
	return states, "", nil
}

func TestParseSearch(t *testing.T) {
	const complete = "Full statespace search for:\nState-vector 92 byte, depth reached 62, errors: 0\n   739184 states, stored\n"
	for output, want := range map[string]struct {
		states int
		broken string
		ok     bool
	}{
		complete: {739184, "", true},
		"error: max search depth too small\n" + complete: {739184, "", false},
		"Warning: Search not completed\n" + complete:     {739184, "", false},
		strings.Replace(complete, "Full", "Bit", 1):      {739184, "", false},
		"pan: reached -DMEMLIM bound\n" + complete:       {739184, "", false},
		"": {0, "", false},
		"pan:1: assertion violated G1 (at depth 3)\ndepth reached 58, errors: 1\n 20 states, stored\n":   {20, "G1", true},
		"pan:1: assertion violated (G2) (at depth 3)\ndepth reached 58, errors: 1\n 20 states, stored\n": {20, "G2", true},
		"pan:1: invalid end state (at depth 11)\ndepth reached 58, errors: 1\n 2 states, stored\n":       {2, "invalid end state", true},
		"pan:1: something else (at depth 11)\ndepth reached 58, errors: 1\n 2 states, stored\n":          {2, "", false},
	} {
		states, broken, err := parseSearch(output)
		if states != want.states || broken != want.broken || (err == nil) != want.ok {
			t.Errorf("%q: %d states, broken %q, error %v; want %+v", output, states, broken, err, want)
		}
	}
}
