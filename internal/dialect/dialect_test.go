// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"math"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/dialect"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]dialect.Set{
		"draft-11": dialect.Draft11, "legacy": dialect.Legacy, "x": dialect.X, "none": dialect.None,
		"draft-11, x":         dialect.Draft11 | dialect.X,
		"draft-11, legacy, x": dialect.Draft11 | dialect.Legacy | dialect.X,
	} {
		got, err := dialect.Parse(strings.Split(text, ", ")...)
		if err != nil || got != want || got.String() != text {
			t.Errorf("Parse(%s) = %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := dialect.Parse("x", "x"); err != nil || got != dialect.X {
		t.Errorf("Parse(x, x) = %v, %v, want x", got, err)
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, names := range [][]string{nil, {""}, {"draft-12"}, {"Legacy"}, {"x "}, {"none", "x"}, {"draft-11", "none"}} {
		if got, err := dialect.Parse(names...); err == nil || got != 0 || !strings.Contains(err.Error(), "dialect") {
			t.Errorf("Parse(%q) = %v, %v, want an error that says dialect", names, got, err)
		}
	}
}

func TestSet_ZeroSaysNothing(t *testing.T) {
	var none dialect.Set
	if none.String() != "" || none.Has(dialect.None|dialect.Draft11|dialect.Legacy|dialect.X) {
		t.Errorf("the zero Set are %q, want nothing", none)
	}
}

func TestParseJitter(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "0%": 0, "1%": 1, "50%": 50, "100%": 100} {
		j, err := dialect.ParseJitter(text)
		got, ok := j.Percent()
		if err != nil || !ok || got != want {
			t.Errorf("ParseJitter(%q) = %d, %v, %v, want %d", text, got, ok, err, want)
		}
		if again, err := dialect.ParseJitter(j.String()); err != nil || again != j {
			t.Errorf("ParseJitter(%q) = %v, %v, want %v again", j.String(), again, err, j)
		}
	}
}

func TestParseJitter_Refuses(t *testing.T) {
	for _, text := range []string{"", "%", "50", "101%", "65536%", "-1%", "+1%", "0.5%", "1.5", "50 %", "50%%", "1s", "max(1s, 50%)", "NaN%"} {
		j, err := dialect.ParseJitter(text)
		if _, ok := j.Percent(); err == nil || ok || !strings.Contains(err.Error(), "jitter") {
			t.Errorf("ParseJitter(%q) = %v, %v, want an error that says jitter", text, j, err)
		}
	}
	for _, percent := range []int{-1, 101, math.MaxInt} {
		if j, err := dialect.NewJitter(percent); err == nil {
			t.Errorf("JitterOf(%d) = %v, want an error", percent, j)
		}
	}
}

func TestJitter_ZeroSaysNothing(t *testing.T) {
	var j dialect.Jitter
	if got, ok := j.Percent(); got != 0 || ok || j.String() != "" {
		t.Errorf("the zero Jitter is %d, %v, %q, want nothing", got, ok, j)
	}
}
