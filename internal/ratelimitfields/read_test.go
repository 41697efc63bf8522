// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/ratelimitfields"
)

type announced = ratelimitfields.Announced

// month is the cap of announced times.
const month = 31 * 24 * time.Hour

func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestRead(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		what  string
		lines []string
		want  []announced
	}{
		{"nothing", nil, nil},
		{"draft-11", []string{`RateLimit-Policy: "free";q=20;w=2`, `RateLimit: "free";r=19;t=2`},
			[]announced{{"free", 19, 2 * time.Second, 20, 2 * time.Second}}},
		{"draft-11 as net/http spells it", []string{`Ratelimit-Policy: "free";q=20;w=2`, `Ratelimit: "free";r=19;t=2`},
			[]announced{{"free", 19, 2 * time.Second, 20, 2 * time.Second}}},
		{"several, on several lines, with what else there may be",
			[]string{`RateLimit-Policy: "a\"b";q=1;w=1;qu="requests" , day;pk=:YQ==:;q=9`, `RateLimit: "a\"b";r=1;t=1`, `RateLimit: day; r=3;x`},
			[]announced{{`a"b`, 1, time.Second, 1, time.Second}, {"day", 3, 0, 9, 0}}},
		{"the draft after", []string{`RateLimit-Policy: "p";q=5;w=60`, `RateLimit: "p";a=4;w=50;c=1`},
			[]announced{{"p", 4, 50 * time.Second, 5, time.Minute}}},
		{"draft-07", []string{`RateLimit-Policy: 100;w=60`, `RateLimit: limit=100, remaining=50, reset=5`},
			[]announced{{"", 50, 5 * time.Second, 100, time.Minute}}},
		{"draft-06", []string{`RateLimit-Policy: 10;w=1, 50;w=60`, `RateLimit-Limit: 50`, `RateLimit-Remaining: 7`, `RateLimit-Reset: 30`},
			[]announced{{"", 7, 30 * time.Second, 50, time.Minute}}},
		{"draft-03", []string{`RateLimit-Limit: 100, 100;w=60;burst=1000`, `RateLimit-Remaining: 7`, `RateLimit-Reset: 30`},
			[]announced{{"", 7, 30 * time.Second, 100, time.Minute}}},
		{"Envoy", []string{`X-RateLimit-Limit: 10, 10;w=1;name="per-ip", 1000;w=3600`, `X-RateLimit-Remaining: 3`, `X-RateLimit-Reset: 1`},
			[]announced{{"", 3, time.Second, 10, time.Second}}},
		{"GitHub", []string{`X-Ratelimit-Limit: 5000`, `X-Ratelimit-Remaining: 4999`, `X-Ratelimit-Reset: 1777640400`, `Date: Fri, 01 May 2026 12:30:00 GMT`},
			[]announced{{"", 4999, 30 * time.Minute, 5000, 0}}},
		{"a Unix time, without a date", []string{`X-RateLimit-Remaining: 1`, `X-RateLimit-Reset: 1777636860`},
			[]announced{{"", 1, time.Minute, 0, 0}}},
		{"X", []string{`X-Rate-Limit-Limit: 15`, `X-Rate-Limit-Remaining: 14`, `X-Rate-Limit-Reset: 0.5`},
			[]announced{{"", 14, time.Second, 15, 0}}},
		{"two dialects: the draft counts", []string{`RateLimit: "a";r=1;t=1`, `RateLimit-Remaining: 9`},
			[]announced{{"a", 1, time.Second, 0, 0}}},
		{"a broken draft: the older one counts", []string{`RateLimit: "a;r=1`, `RateLimit-Remaining: 9`},
			[]announced{{"", 9, 0, 0, 0}}},

		{"negative", []string{`RateLimit: "a";r=-1;t=1`, `RateLimit-Remaining: -3`}, nil},
		{"not a number", []string{`RateLimit: "a";r=NaN`, `X-RateLimit-Remaining: Infinity`}, nil},
		{"an exponent", []string{`RateLimit-Remaining: 1e9`}, nil},
		{"huge", []string{`RateLimit-Remaining: 99999999999999999999999`, `RateLimit-Reset: 31536000`},
			[]announced{{"", 999_999_999_999_999, month, 0, 0}}},
		{"a time that has passed", []string{`X-RateLimit-Remaining: 5`, `X-RateLimit-Reset: 1600000000`}, []announced{{"", 5, 0, 0, 0}}},
		{"control characters", []string{"RateLimit: \"a\x00\";r=1;t=1"}, nil},
		{"too long", []string{`RateLimit: "` + strings.Repeat("a", 5000) + `";r=1`}, nil},
		{"too many items", []string{`RateLimit: ` + strings.Repeat(`"a";r=1,`, 100)}, nil},
	} {
		if got := ratelimitfields.Read(header(tt.lines...), now); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q:\ngot  %v\nwant %v", tt.what, tt.lines, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const noon = "Date: Fri, 01 May 2026 12:00:00 GMT"
	for _, tt := range []struct {
		lines []string
		want  time.Duration
		ok    bool
	}{
		{nil, 0, false},
		{[]string{"Retry-After: 120"}, 2 * time.Minute, true},
		{[]string{"Retry-After: 0"}, 0, true},
		{[]string{"Retry-After: 1.2"}, 2 * time.Second, true},
		{[]string{"Retry-After: Fri, 01 May 2026 12:00:30 GMT"}, 30 * time.Second, true},
		{[]string{"Retry-After: Fri, 01 May 2026 12:00:30 GMT", noon}, 30 * time.Second, true},
		{[]string{"Retry-After: Fri, 01 May 2026 11:00:30 GMT", "Date: Fri, 01 May 2026 11:00:00 GMT"}, 30 * time.Second, true}, // clocks apart
		{[]string{"Retry-After: Fri, 01 May 2020 12:00:30 GMT"}, 0, true},
		{[]string{"Retry-After: 99999999999999999999"}, month, true},
		{[]string{"Retry-After: Fri, 01 May 2999 12:00:30 GMT"}, month, true},
		{[]string{"Retry-After: -5"}, 0, false},
		{[]string{"Retry-After: soon"}, 0, false},
		{[]string{"Retry-After: 1", "Retry-After: 2"}, 0, false},
	} {
		got, ok := ratelimitfields.RetryAfter(header(tt.lines...), now)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", tt.lines, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`"a";q=1;w=2`, `"a";r=1;t=2`, "5", "1777640400")
	f.Add(`10;w=1`, `limit=1, remaining=2, reset=3`, "5, 5;w=1", "0.5")
	f.Fuzz(func(t *testing.T, policies, limits, remaining, reset string) {
		h := header("RateLimit-Policy: "+policies, "RateLimit: "+limits, "X-RateLimit-Remaining: "+remaining, "X-RateLimit-Reset: "+reset, "Retry-After: "+reset)
		got := ratelimitfields.Read(h, time.Unix(1_777_000_000, 0))
		if len(got) > ratelimitfields.MaxAnnounced {
			t.Errorf("got %d limits", len(got))
		}
		for _, a := range got {
			if a.Remaining < 0 || a.Quota < 0 || a.Reset < 0 || a.Reset > month || a.Window < 0 || a.Window > month {
				t.Errorf("%v: got %+v", h, a)
			}
		}
		if wait, _ := ratelimitfields.RetryAfter(h, time.Unix(1_777_000_000, 0)); wait < 0 || wait > month {
			t.Errorf("%v: got a wait of %v", h, wait)
		}
	})
}
