// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A denial has one wait: every field and the text of the body have the same number of seconds, for every jitter,
// dialect and limit. The JSON has the exact wait.
func TestDeny_OneWait(t *testing.T) {
	const token = bucket.Token
	now := time.Unix(1_700_000_000, 400_000_000)
	hour := newLimit(t, "hour", "1", "1/1h")
	for _, tt := range []struct {
		what     string
		decision func() *mete.Decision
		low      int64 // what Retry-After is without jitter
		item     string
	}{
		{"one limit", func() *mete.Decision { return decision(status(hour, 0, token)) }, 3600, `"hour";r=0;t=%d`},
		{"a shorter wait beside it", func() *mete.Decision {
			return decision(status(newLimit(t, "fast", "2", "1/1s"), 0, token), status(hour, 0, token))
		}, 3600, `"fast";r=0;t=1, "hour";r=0;t=%d`},
		{"two equal waits", func() *mete.Decision {
			return decision(status(newLimit(t, "other", "1", "1/1h"), 0, token), status(hour, 0, token))
		}, 3600, `"other";r=0;t=%[1]d, "hour";r=0;t=%[1]d`},
		{"jitter of the rule", func() *mete.Decision {
			s := status(hour, 0, token)
			s.Rule = ruleOf(t, "", "100%")
			return decision(s)
		}, 3600, `"hour";r=0;t=%d`},
		{"the longest wait is of a limit that is not shown", func() *mete.Decision {
			hidden := status(newLimit(t, "hidden", "1", "1/1d"), 0, token)
			hidden.Rule = ruleOf(t, "none", "")
			return decision(status(hour, 0, token), hidden)
		}, 86400, `"hour";r=0;t=%d`},
	} {
		w := newWriter(t, ratelimitfields.Config{Dialects: []string{"draft-11", "legacy", "x"}, Now: func() bucket.Instant { return bucket.At(now) }})
		later := false
		for client := range 50 {
			d := tt.decision()
			rec := httptest.NewRecorder()
			w.Deny(rec, httptest.NewRequest("GET", "/", nil), d, strconv.Itoa(client))
			h := rec.Header()
			retry, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
			if err != nil || retry < tt.low || retry > 2*tt.low {
				t.Fatalf("%s: got Retry-After %q, want %d and its jitter", tt.what, h.Get("Retry-After"), tt.low)
			}
			later = later || retry > tt.low
			if got, want := h.Get("RateLimit"), fmt.Sprintf(tt.item, retry); got != want {
				t.Errorf("%s: got RateLimit %s beside Retry-After %d, want %s", tt.what, got, retry, want)
			}
			if got := h.Get("RateLimit-Reset"); got != h.Get("Retry-After") {
				t.Errorf("%s: got RateLimit-Reset %s beside Retry-After %d", tt.what, got, retry)
			}
			// The bucket of one token is full when the wait is over; the sum has a part of a second.
			if got, want := h.Get("X-RateLimit-Reset"), strconv.FormatInt(1_700_000_000+retry+1, 10); got != want {
				t.Errorf("%s: got X-RateLimit-Reset %s beside Retry-After %d, want %s", tt.what, got, retry, want)
			}
			var body struct {
				Detail     string
				RetryAfter float64 `json:"retry_after"`
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(body.Detail, fmt.Sprintf("Try again in %d seconds.", retry)) || body.RetryAfter != d.RetryAfter.Seconds() {
				t.Errorf("%s: got %s beside Retry-After %d, want that, and an exact retry_after of %v", tt.what, rec.Body, retry, d.RetryAfter)
			}
		}
		if !later {
			t.Errorf("%s: no client of 50 has jitter", tt.what)
		}
	}
}

// X-RateLimit-Reset is the time at which the bucket is full, and never before Retry-After.
func TestHeader_ResetIsWhenFull(t *testing.T) {
	const token = bucket.Token
	now := time.Unix(1_700_000_000, 0)
	for _, tt := range []struct {
		what        string
		limit, rate string
		there, cost bucket.Tokens
		want        int64 // seconds from now
	}{
		{"39 of 50 left at 10 a second: 1.1 s", "50", "10/1s", 40 * token, token, 2},
		{"all but one left of a slow bucket", "50", "1/1m", 50 * token, token, 60},
		{"full", "50", "10/1s", 50 * token, 0, 0},
		{"nothing left", "50", "10/1s", token, token, 5},
		{"denied, long before it is full", "50", "1/1m", 0, token, 3000},
		{"denied, full when the wait is over", "1", "1/1m", 0, token, 60},
		{"denied, in less than a second", "1", "10/1s", 0, token, 1},
	} {
		h := httptest.NewRecorder().Header()
		w := newWriter(t, ratelimitfields.Config{Dialects: []string{"x"}, DisableJitter: true, Now: func() bucket.Instant { return bucket.At(now) }})
		w.Header(h, decision(status(newLimit(t, "l", tt.limit, tt.rate), tt.there, tt.cost)))
		if got, want := h.Get("X-RateLimit-Reset"), strconv.FormatInt(1_700_000_000+tt.want, 10); got != want {
			t.Errorf("%s: got %s, want %s", tt.what, got, want)
		}
	}
}

// With ExactWaits, rules have no effect on waits.
func TestHeader_ExactWaits(t *testing.T) {
	w := newWriter(t, ratelimitfields.Config{ExactWaits: true})
	for client := range 20 {
		s := status(newLimit(t, "hour", "1", "1/1h"), 0, bucket.Token)
		s.Rule = ruleOf(t, "", "100%")
		h := httptest.NewRecorder().Header()
		w.Header(h, decision(s), strconv.Itoa(client))
		if h.Get("RateLimit") != `"hour";r=0;t=3600` || h.Get("Retry-After") != "3600" {
			t.Errorf("got %v, want waits of 3600", h)
		}
	}
}
