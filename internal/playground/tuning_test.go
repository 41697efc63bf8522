// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/playground"
)

const tuningPage = "../../doc/tuning.md"

var (
	playgroundLink = regexp.MustCompile(`\]\((http://127\.0\.0\.1:8081/dashboard/#/playground[^)]*)\)`)
	burstClaim     = regexp.MustCompile(`(?i)burst ([\d,]+) allows ([\d,]+) of ([\d,]+)(?:, at most ([\d,]+) in a second)?`)
)

// Each row of doc/tuning.md with a link states what the limits of the link allow.
func TestTuning_Figures(t *testing.T) {
	text, err := os.ReadFile(tuningPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for number, line := range strings.Split(string(text), "\n") {
		links, claims := playgroundLink.FindAllStringSubmatch(line, -1), burstClaim.FindAllStringSubmatch(line, -1)
		if len(links) == 0 && len(claims) == 0 {
			continue
		}
		rows++
		at := fmt.Sprintf("%s:%d", tuningPage, number+1)
		if len(links) != 1 {
			t.Errorf("%s: %d links in a row with figures", at, len(links))
			continue
		}
		in, err := parseLink(links[0][1])
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		result, err := playground.Play(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		if len(claims) != len(result.Lanes) {
			t.Errorf("%s: figures for %d of %d limits", at, len(claims), len(result.Lanes))
			continue
		}
		for i := range result.Lanes {
			checkClaim(t, at, claims[i], &result.Lanes[i])
		}
	}
	if rows != 7 {
		t.Errorf("%s has figures in %d rows, want 7", tuningPage, rows)
	}
}

func checkClaim(t *testing.T, at string, claim []string, lane *api.PlayLaneResult) {
	t.Helper()
	for _, c := range []struct {
		what  string
		claim string
		got   int
	}{
		{"burst", claim[1], int(lane.Capacity / 1000)},
		{"allowed", claim[2], lane.Totals.Allowed},
		{"sent", claim[3], lane.Totals.Sent},
	} {
		if number(t, c.claim) != c.got {
			t.Errorf("%s: %s: the page has %s, the engine %d", at, c.what, c.claim, c.got)
		}
	}
	if claim[4] == "" {
		return
	}
	if got := int(lane.Totals.Peak / 1000); time.Duration(lane.Window) != time.Second || number(t, claim[4]) != got {
		t.Errorf("%s: the page has at most %s in a second, the engine %d in %v", at, claim[4], got, time.Duration(lane.Window))
	}
}

// number reads a number with separators between thousands.
func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The bursts of the recommended settings follow from the rate as the page states.
func TestTuning_Recommended(t *testing.T) {
	text, err := os.ReadFile(tuningPage)
	if err != nil {
		t.Fatal(err)
	}
	const rate = 10
	recommended := regexp.MustCompile(`\| \*\*(\w+)\*\*[^|]*\| (\d+) × rate \((\d+)\)`).FindAllStringSubmatch(string(text), -1)
	if len(recommended) != 4 {
		t.Fatalf("%d recommended settings, want 4", len(recommended))
	}
	for _, m := range recommended {
		if number(t, m[2])*rate != number(t, m[3]) {
			t.Errorf("%s: %s × %d is not %s", m[1], m[2], rate, m[3])
		}
		row := regexp.MustCompile(`\| ` + m[1] + `: \[[^\]]*\]\(([^)]*)\)`).FindStringSubmatch(string(text))
		if row == nil {
			t.Errorf("%s has no link to the playground", m[1])
			continue
		}
		in, err := parseLink(row[1])
		if err != nil {
			t.Error(err)
			continue
		}
		if l := in.Lanes[0]; l.Tokens != "10" || l.Per != "1s" || string(l.Capacity) != m[3] {
			t.Errorf("%s: the link plays %v/%s with a capacity of %v first", m[1], l.Tokens, l.Per, l.Capacity)
		}
	}
}
