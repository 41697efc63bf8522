// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
)

func TestParseDialects(t *testing.T) {
	for text, want := range map[string]policy.Dialects{
		"draft-11": policy.DialectDraft11, "legacy": policy.DialectLegacy, "x": policy.DialectX, "none": policy.DialectNone,
		"draft-11, x":         policy.DialectDraft11 | policy.DialectX,
		"draft-11, legacy, x": policy.DialectDraft11 | policy.DialectLegacy | policy.DialectX,
	} {
		got, err := policy.ParseDialects(strings.Split(text, ", ")...)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseDialects(%s) = %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := policy.ParseDialects("x", "x"); err != nil || got != policy.DialectX {
		t.Errorf("ParseDialects(x, x) = %v, %v, want x", got, err)
	}
}

func TestParseDialects_Refuses(t *testing.T) {
	for _, names := range [][]string{nil, {""}, {"draft-12"}, {"Legacy"}, {"x "}, {"none", "x"}, {"draft-11", "none"}} {
		if got, err := policy.ParseDialects(names...); err == nil || got != 0 || !strings.Contains(err.Error(), "dialect") {
			t.Errorf("ParseDialects(%q) = %v, %v, want an error that says dialect", names, got, err)
		}
	}
}

func TestDialects_ZeroSaysNothing(t *testing.T) {
	var none policy.Dialects
	if none.String() != "" || none.Has(policy.DialectNone|policy.DialectDraft11|policy.DialectLegacy|policy.DialectX) {
		t.Errorf("the zero Dialects are %q, want nothing", none)
	}
}

func TestParseJitter(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "0%": 0, "1%": 1, "50%": 50, "100%": 100} {
		j, err := policy.ParseJitter(text)
		got, ok := j.Percent()
		if err != nil || !ok || got != want {
			t.Errorf("ParseJitter(%q) = %d, %v, %v, want %d", text, got, ok, err, want)
		}
		if again, err := policy.ParseJitter(j.String()); err != nil || again != j {
			t.Errorf("ParseJitter(%q) = %v, %v, want %v again", j.String(), again, err, j)
		}
	}
}

func TestParseJitter_Refuses(t *testing.T) {
	for _, text := range []string{"", "%", "50", "101%", "65536%", "-1%", "+1%", "0.5%", "1.5", "50 %", "50%%", "1s", "max(1s, 50%)", "NaN%"} {
		j, err := policy.ParseJitter(text)
		if _, ok := j.Percent(); err == nil || ok || !strings.Contains(err.Error(), "jitter") {
			t.Errorf("ParseJitter(%q) = %v, %v, want an error that says jitter", text, j, err)
		}
	}
	for _, percent := range []int{-1, 101, math.MaxInt} {
		if j, err := policy.JitterOf(percent); err == nil {
			t.Errorf("JitterOf(%d) = %v, want an error", percent, j)
		}
	}
}

func TestJitter_ZeroSaysNothing(t *testing.T) {
	var j policy.Jitter
	if got, ok := j.Percent(); got != 0 || ok || j.String() != "" {
		t.Errorf("the zero Jitter is %d, %v, %q, want nothing", got, ok, j)
	}
}
