// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/metehq/mete/internal/ratelimitfields"
)

func TestReadModel(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type limit = ratelimitfields.Announced
	for name, tt := range map[string]struct {
		fields []string
		want   []limit
	}{
		"OpenAI": {[]string{
			"x-ratelimit-limit-requests", "60", "x-ratelimit-remaining-requests", "59", "x-ratelimit-reset-requests", "1s",
			"x-ratelimit-limit-tokens", "150000", "x-ratelimit-remaining-tokens", "149984", "x-ratelimit-reset-tokens", "6m0s",
		}, []limit{{"requests", 59, time.Second, 60, 0}, {"tokens", 149984, 6 * time.Minute, 150000, 0}}},
		"fractions":     {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "7.66s"}, []limit{{"tokens", 0, 7660 * time.Millisecond, 0, 0}}},
		"milliseconds":  {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "120ms"}, []limit{{"tokens", 0, 120 * time.Millisecond, 0, 0}}},
		"plain seconds": {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "59"}, []limit{{"tokens", 0, 59 * time.Second, 0, 0}}},
		"Anthropic": {[]string{
			"anthropic-ratelimit-requests-limit", "50", "anthropic-ratelimit-requests-remaining", "49", "anthropic-ratelimit-requests-reset", "2026-03-01T12:00:01Z",
			"anthropic-ratelimit-output-tokens-limit", "8000", "anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset", "2026-03-01T12:00:30Z",
		}, []limit{{"requests", 49, time.Second, 50, 0}, {"output-tokens", 0, 30 * time.Second, 8000, 0}}},
		"the server's clock": {[]string{
			"date", "Sun, 01 Mar 2026 11:59:00 GMT", "anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset", "2026-03-01T12:00:00Z",
		}, []limit{{"tokens", 0, time.Minute, 0, 0}}},
		"other dialects":  {[]string{"x-ratelimit-limit", "10", "x-ratelimit-remaining", "0", "x-ratelimit-reset", "5"}, []limit{{"", 0, 5 * time.Second, 10, 0}}},
		"a reset in 2300": {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "2400000h"}, []limit{{"tokens", 0, 31 * 24 * time.Hour, 0, 0}}},
		"malformed":       {[]string{"x-ratelimit-remaining-tokens", "-1", "x-ratelimit-reset-tokens", "5s"}, nil},
		"no reset":        {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "soon"}, []limit{{"tokens", 0, 0, 0, 0}}},
		"a negative one":  {[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "-5s"}, []limit{{"tokens", 0, 0, 0, 0}}},
	} {
		h := http.Header{}
		for i := 0; i < len(tt.fields); i += 2 {
			h.Set(tt.fields[i], tt.fields[i+1])
		}
		got, untilFull := ratelimitfields.ReadModel(h, now)
		if !slices.Equal(got, tt.want) || untilFull != (len(tt.want) > 0 && tt.want[0].Name != "") {
			t.Errorf("%s: got %+v (until full: %v), want %+v", name, got, untilFull, tt.want)
		}
	}
}

func TestRetryAfterModel(t *testing.T) {
	for _, tt := range []struct {
		ms, seconds string
		want        time.Duration
		ok          bool
	}{
		{"1500", "2", 1500 * time.Millisecond, true},
		{"0.5", "", 500 * time.Microsecond, true},
		{"", "2", 2 * time.Second, true},
		{"-3", "2", 2 * time.Second, true},
		{"NaN", "2", 2 * time.Second, true},
		{"1e300", "", 31 * 24 * time.Hour, true},
		{"", "", 0, false},
	} {
		h := http.Header{}
		if tt.ms != "" {
			h.Set("Retry-After-Ms", tt.ms)
		}
		if tt.seconds != "" {
			h.Set("Retry-After", tt.seconds)
		}
		if got, ok := ratelimitfields.RetryAfterModel(h, time.Now()); got != tt.want || ok != tt.ok {
			t.Errorf("%+v: got %v, %v", tt, got, ok)
		}
	}
}
