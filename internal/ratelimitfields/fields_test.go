// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
)

// newLimit returns a limit of capacity and rate as policies write them.
func newLimit(t testing.TB, name, capacity, rate string) *policy.Limit {
	t.Helper()
	c, err := bucket.ParseTokens(capacity)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bucket.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	l, err := bucket.NewLimit(c, r)
	if err != nil {
		t.Fatalf("NewLimit(%s, %s): %v", capacity, rate, err)
	}
	return &policy.Limit{Name: name, Reason: "token_bucket_exceeded", Bucket: l}
}

// status returns the status of taking cost from a bucket that holds there.
func status(l *policy.Limit, there, cost bucket.Tokens) mete.Status {
	s, _ := l.Bucket.Take(bucket.State{}, 0, l.Bucket.Capacity()-there)
	_, snap := l.Bucket.Take(s, 0, cost)
	return mete.Status{Rule: &policy.Rule{Name: "rule"}, Limit: l, Snapshot: snap}
}

// decision returns the decision for statuses.
func decision(statuses ...mete.Status) *mete.Decision {
	d := new(mete.Decision{Allowed: true, Rule: "rule"}.WithLimits(statuses...))
	for _, s := range statuses {
		if !s.Allowed {
			d.Allowed, d.Reason = false, s.Limit.Reason
			d.RetryAfter = max(d.RetryAfter, s.RetryAfter)
		}
	}
	return d
}

func newWriter(t testing.TB, config ratelimitfields.Config) *ratelimitfields.Writer {
	t.Helper()
	w, err := ratelimitfields.New(config)
	if err != nil {
		t.Fatalf("New(%+v): %v", config, err)
	}
	return w
}

// fields shows a header as lines, sorted.
func fields(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(h[name], " | "))
	}
	return b.String()
}

func TestHeader(t *testing.T) {
	const token = bucket.Token
	now := time.Unix(1_700_000_000, 250_000_000)
	free := newLimit(t, "free", "20", "10/1s")
	for _, tt := range []struct {
		what     string
		dialects []string
		decision *mete.Decision
		want     string
	}{
		{"allowed", nil, decision(status(newLimit(t, "per-org-rps", "200", "100/1s"), 88*token, token)), `
Ratelimit: "per-org-rps";r=87;t=1
Ratelimit-Limit: 200
Ratelimit-Policy: "per-org-rps";q=200;w=2
Ratelimit-Remaining: 87
Ratelimit-Reset: 1
`},
		{"allowed, a part of a token left", []string{"draft-11"}, decision(status(free, 11900, token)), `
Ratelimit: "free";r=10;t=2
Ratelimit-Policy: "free";q=20;w=2
`},
		{"allowed, nothing left of a slow bucket", []string{"legacy"}, decision(status(newLimit(t, "slow", "1", "1/1h"), token, token)), `
Ratelimit-Limit: 1
Ratelimit-Remaining: 0
Ratelimit-Reset: 3600
`},
		{"allowed, less than a token left of a slow bucket", []string{"draft-11"}, decision(status(newLimit(t, "slow", "2", "1/1h"), 1750, token)), `
Ratelimit: "slow";r=0;t=900
Ratelimit-Policy: "slow";q=2;w=7200
`},
		{"a bucket of less than a token", nil, decision(status(newLimit(t, "half", "0.5", "1/10s"), 500, 250)), `
Ratelimit: "half";r=0;t=3
Ratelimit-Limit: 0
Ratelimit-Policy: "half";q=0;w=5
Ratelimit-Remaining: 0
Ratelimit-Reset: 3
`},
		{"full in a moment", []string{"draft-11"}, decision(status(newLimit(t, "fast", "5", "1000/1s"), 5*token, 0)), `
Ratelimit: "fast";r=5;t=1
Ratelimit-Policy: "fast";q=5;w=1
`},
		{"x", []string{"x"}, decision(status(free, 20*token, token)), `
X-Ratelimit-Limit: 20
X-Ratelimit-Remaining: 19
X-Ratelimit-Reset: 1700000001
`},
		{"none", []string{"none"}, decision(status(free, 20*token, token)), "\n"},
		{"no limit applied", nil, &mete.Decision{Allowed: true}, "\n"},
		{"the store had no part", nil, &mete.Decision{Allowed: true, Degraded: true}, "\n"},
		{"denied", nil, decision(status(free, 999, token)), `
Cache-Control: no-store
Ratelimit: "free";r=0;t=1
Ratelimit-Limit: 20
Ratelimit-Policy: "free";q=20;w=2
Ratelimit-Remaining: 0
Ratelimit-Reset: 1
Retry-After: 1
X-Ratelimit-Reason: token_bucket_exceeded
`},
		{"denied, with tokens left", []string{"legacy", "x"}, decision(status(free, 4*token, 20*token)), `
Cache-Control: no-store
Ratelimit-Limit: 20
Ratelimit-Remaining: 0
Ratelimit-Reset: 2
Retry-After: 2
X-Ratelimit-Limit: 20
X-Ratelimit-Reason: token_bucket_exceeded
X-Ratelimit-Remaining: 0
X-Ratelimit-Reset: 1700000003
`},
		{"denied by one of several", nil, decision(
			status(newLimit(t, "org", "1000", "1000/1d"), 500*token, 0),
			status(newLimit(t, "burst", "2", "1/1s"), 0, token),
			status(newLimit(t, "minute", "10", "10/1m"), 0, token)), `
Cache-Control: no-store
Ratelimit: "org";r=500;t=43200, "burst";r=0;t=1, "minute";r=0;t=6
Ratelimit-Limit: 10
Ratelimit-Policy: "org";q=1000;w=86400, "burst";q=2;w=2, "minute";q=10;w=60
Ratelimit-Remaining: 0
Ratelimit-Reset: 6
Retry-After: 6
X-Ratelimit-Reason: token_bucket_exceeded
`},
		{"never", []string{"draft-11", "legacy", "x"}, decision(status(free, 20*token, 21*token)), `
Cache-Control: no-store
Ratelimit: "free";r=0
Ratelimit-Limit: 20
Ratelimit-Policy: "free";q=20;w=2
Ratelimit-Remaining: 0
X-Ratelimit-Limit: 20
X-Ratelimit-Reason: token_bucket_exceeded
X-Ratelimit-Remaining: 0
`},
		{"a missing attribute", nil, &mete.Decision{Rule: "r", Reason: mete.ReasonMissingAttribute, RetryAfter: bucket.Never}, `
Cache-Control: no-store
X-Ratelimit-Reason: missing_attribute
`},
		{"closed", nil, &mete.Decision{Rule: "r", Reason: mete.ReasonStoreError, Degraded: true}, `
Cache-Control: no-store
Retry-After: 1
X-Ratelimit-Reason: store_error
`},
		{"escapes", []string{"draft-11"}, decision(status(newLimit(t, `a"b\c`, "1", "1/1s"), token, token)), `
Ratelimit: "a\"b\\c";r=0;t=1
Ratelimit-Policy: "a\"b\\c";q=1;w=1
`},
		{"the largest numbers", []string{"draft-11"}, decision(status(newLimit(t, "vast", "9007199254740", "1000/1s"), 9_007_199_254_739*token, 0)), `
Ratelimit: "vast";r=9007199254739;t=9007199255
Ratelimit-Policy: "vast";q=9007199254740;w=9007199255
`},
	} {
		w := newWriter(t, ratelimitfields.Config{Dialects: tt.dialects, DisableJitter: true, Now: func() bucket.Instant { return bucket.At(now) }})
		for range 2 { // made, then remembered
			h := http.Header{}
			w.Header(h, tt.decision, "client")
			if got := "\n" + fields(h); got != tt.want {
				t.Errorf("%s: got%swant%s", tt.what, got, tt.want)
			}
		}
	}
}

func TestHeader_ReplacesFields(t *testing.T) {
	w := newWriter(t, ratelimitfields.Config{})
	h := http.Header{"Ratelimit": {"old", "older"}, "X-Other": {"kept"}}
	w.Header(h, decision(status(newLimit(t, "free", "20", "10/1s"), 20*bucket.Token, bucket.Token)))
	h.Add("RateLimit", "appended") // must not reach the next field
	for name, want := range map[string]string{"RateLimit": `"free";r=19;t=2`, "RateLimit-Limit": "20", "X-Other": "kept"} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// The fields are correct for any limit, state and cost.
func TestHeader_Promises(t *testing.T) {
	rng := rand.New(testseed.PCG(1, 2))
	w := newWriter(t, ratelimitfields.Config{})
	for i := range 20_000 {
		capacity := bucket.Tokens(1 + rng.Int64N(1<<rng.IntN(40)))
		rate := bucket.Rate{Tokens: bucket.Tokens(1 + rng.Int64N(1<<rng.IntN(30))), Per: time.Duration(1+rng.Int64N(1<<rng.IntN(36))) * time.Microsecond}
		compiled, err := bucket.NewLimit(capacity, rate)
		if err != nil {
			continue
		}
		s := status(&policy.Limit{Name: "l", Bucket: compiled}, bucket.Tokens(rng.Int64N(int64(capacity)+1)), bucket.Tokens(1+rng.Int64N(1<<rng.IntN(41))))
		d := decision(s)
		h := http.Header{}
		w.Header(h, d, strconv.Itoa(i))
		items, err := parseList(h.Get("RateLimit"))
		if err != nil || len(items) != 1 {
			t.Fatalf("%v, %v: RateLimit %q: %v", compiled, s, h.Values("RateLimit"), err)
		}
		checkItem(t, h, items[0], s)
	}
}

func checkItem(t *testing.T, h http.Header, it sfItem, s mete.Status) {
	t.Helper()
	r, hasR := it.params["r"]
	effective, hasT := it.params["t"]
	fail := func(what string) {
		t.Helper()
		t.Fatalf("%s:\n%v, allowed %v, remaining %v, retry after %v\n%s", what, s.Snapshot.Limit, s.Allowed, s.Remaining(), s.RetryAfter, fields(h))
	}
	n, p := s.Snapshot.Limit.Refill()
	perSecond := float64(n) / 1000 / float64(p) * 1e6
	switch {
	case !hasR || hasT != (s.RetryAfter != bucket.Never):
		fail("r is always there, and t unless no wait helps")
	case hasT && effective < 1:
		fail("t is at least 1")
	case s.Allowed && r != s.Remaining().Whole():
		fail("r is the whole tokens there")
	case !s.Allowed && r != 0:
		fail("r is 0 where denied")
	case s.Allowed && float64(r) > perSecond*float64(effective)*(1+1e-9):
		fail("r in t is not above the rate")
	case s.Allowed && r > 0 && time.Duration(effective-1)*time.Second >= s.Snapshot.Limit.TimeFor(s.Remaining()) && effective > 1:
		fail("t is not longer than it must be")
	}
	if s.Allowed {
		if h["Retry-After"] != nil {
			fail("no Retry-After where allowed")
		}
		return
	}
	if s.RetryAfter == bucket.Never {
		if h["Retry-After"] != nil || h.Values("RateLimit-Reset") != nil {
			fail("no Retry-After and no Reset where no wait helps")
		}
		return
	}
	retry, err := strconv.ParseInt(h["Retry-After"][0], 10, 64)
	wait := s.RetryAfter.Seconds()
	exact := int64(math.Ceil(wait))
	switch {
	case err != nil:
		fail("Retry-After is a number of seconds")
	case time.Duration(retry) < s.RetryAfter/time.Second || float64(retry) < wait*(1-1e-12):
		fail("Retry-After is not before the wait")
	case retry != effective:
		fail("t is Retry-After")
	case retry > exact+max(1, exact/2):
		fail("Retry-After is not after the wait and its jitter")
	case h.Get("RateLimit-Reset") != h["Retry-After"][0]:
		fail("Reset is Retry-After")
	}
}

func TestNew_RefusesDialects(t *testing.T) {
	for _, dialects := range [][]string{{"draft-12"}, {""}, {"none", "x"}, {"x", "none"}, {"Legacy"}} {
		if _, err := ratelimitfields.New(ratelimitfields.Config{Dialects: dialects}); err == nil || !strings.Contains(err.Error(), "dialect") {
			t.Errorf("New with dialects %q: got error %v", dialects, err)
		}
	}
}

// More limits than are kept in mind, as a policy that is replaced for ever has.
func TestHeader_ForgetsOldLimits(t *testing.T) {
	w := newWriter(t, ratelimitfields.Config{})
	for i := range 20_000 {
		h := http.Header{}
		name := strconv.Itoa(i)
		w.Header(h, decision(status(newLimit(t, name, "1", "1/1s"), bucket.Token, bucket.Token)))
		if got, want := h.Get("RateLimit"), `"`+name+`";r=0;t=1`; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}
