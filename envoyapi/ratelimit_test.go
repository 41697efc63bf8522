// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/envoyapi"
)

const (
	ok   = ratelimitv3.RateLimitResponse_OK
	over = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

const rules = `{"rules": [
	{"name": "user", "match": {"envoy:domain": "shop"}, "limit_keys": ["descriptor:user"], "algorithm_config": {"rate": "5/10s", "burst": 20}},
	{"name": "tenant", "group": "tenant", "limit_keys": ["descriptor:tenant"], "algorithm_config": {"rate": "100/1m", "burst": 3}}
]}`

func TestRateLimit_Allowed(t *testing.T) {
	r := newRig(t, rules)
	got := r.ask(request(describe("user", "alice"), describe("tenant", "t1"), describe("other", "x")))
	if got.OverallCode != ok || len(got.Statuses) != 3 || got.DynamicMetadata != nil || got.Quota != nil {
		t.Fatalf("%v", got)
	}
	user, tenant, other := got.Statuses[0], got.Statuses[1], got.Statuses[2]
	if user.Code != ok || user.CurrentLimit.Name != "user" || user.LimitRemaining != 19 || user.DurationUntilReset.Seconds != 2 {
		t.Errorf("user: %v", user)
	}
	if l := user.CurrentLimit; l.RequestsPerUnit != 5 || l.Unit != ratelimitv3.RateLimitResponse_RateLimit_SECOND || l.UnitMultiplier.GetValue() != 10 {
		t.Errorf("user: limit %v, want 5 per 10 seconds", l)
	}
	if l := tenant.CurrentLimit; l.RequestsPerUnit != 100 || l.Unit != ratelimitv3.RateLimitResponse_RateLimit_MINUTE || l.UnitMultiplier != nil || tenant.DurationUntilReset.Seconds != 1 {
		t.Errorf("tenant: %v, want 100 per minute, full in 0.6 s rounded up", tenant)
	}
	if other.Code != ok || other.CurrentLimit != nil || other.DurationUntilReset != nil {
		t.Errorf("other: %v", other)
	}
	if h := header(got, "ratelimit"); !strings.Contains(h, `"user";r=19`) || !strings.Contains(h, `"tenant";r=2`) {
		t.Errorf("RateLimit: %s", h)
	}
	if got := r.ask(&ratelimitv3.RateLimitRequest{Domain: "unknown", Descriptors: []*commonv3.RateLimitDescriptor{describe("user", "alice")}}); got.OverallCode != ok || got.Statuses[0].CurrentLimit != nil {
		t.Errorf("unknown domain: %v", got)
	}
}

// A current_limit has the numbers of the policy, and those of the caller's own limit.
func TestRateLimit_CurrentLimit(t *testing.T) {
	for config, want := range map[string]*ratelimitv3.RateLimitResponse_RateLimit{
		`"algorithm_config": {"rate": "5/10s", "burst": 20}`:                                        {RequestsPerUnit: 5, Unit: 1, UnitMultiplier: wrapperspb.UInt32(10)},
		`"algorithm_config": {"rate": "60/1m", "burst": 20}`:                                        {RequestsPerUnit: 60, Unit: 2},
		`"algorithm_config": {"rate": "6/90s", "burst": 20}`:                                        {RequestsPerUnit: 6, Unit: 1, UnitMultiplier: wrapperspb.UInt32(90)},
		`"algorithm_config": {"rps": 10, "burst": 20}`:                                              {RequestsPerUnit: 10, Unit: 1},
		`"algorithm_config": {"rps": 2.5, "burst": 20}`:                                             {RequestsPerUnit: 5, Unit: 1, UnitMultiplier: wrapperspb.UInt32(2)},
		`"algorithm_config": {"rate": "1/250ms", "burst": 20}`:                                      {RequestsPerUnit: 4, Unit: 1},
		`"algorithm_config": {"rate": "10/2h", "burst": 20, "refill": "interval"}`:                  {RequestsPerUnit: 10, Unit: 3, UnitMultiplier: wrapperspb.UInt32(2)},
		`"algorithm": "fixed_window", "algorithm_config": {"tokens": 100, "window": "1m"}`:          {RequestsPerUnit: 100, Unit: 2},
		`"algorithm": "sliding_window", "algorithm_config": {"tokens": 1000, "window": "1h"}`:       {RequestsPerUnit: 1000, Unit: 3},
		`"algorithm": "leaky_bucket", "algorithm_config": {"rate": "30/1m", "queue": 5}`:            {RequestsPerUnit: 30, Unit: 2},
		`"algorithm": "cost_based", "algorithm_config": {"budget": 500, "period": "2d"}`:            {RequestsPerUnit: 500, Unit: 4, UnitMultiplier: wrapperspb.UInt32(2)},
		`"algorithm_config": {"rate": "5000/10s", "burst": 20000, "shards": 4}`:                     {RequestsPerUnit: 5000, Unit: 1, UnitMultiplier: wrapperspb.UInt32(10)},
		`"algorithm": "fixed_window", "algorithm_config": {"tokens": 5000000000, "window": "100s"}`: {RequestsPerUnit: math.MaxUint32, Unit: 1, UnitMultiplier: wrapperspb.UInt32(100)},
	} {
		r := newRig(t, `{"rules": [{"name": "r", "limit_keys": ["descriptor:user"], `+config+`}]}`)
		want.Name = "r"
		if got := r.ask(request(describe("user", "alice"))).Statuses[0].CurrentLimit; !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", config, got, want)
		}
	}
	r := newRig(t, rules)
	got := r.ask(request(limited(describe("k", "v"), 60, typev3.RateLimitUnit_MINUTE, 4), limited(describe("k", "w"), 2, typev3.RateLimitUnit_YEAR, 0)))
	for i, want := range []*ratelimitv3.RateLimitResponse_RateLimit{{RequestsPerUnit: 60, Unit: 2, UnitMultiplier: wrapperspb.UInt32(4)}, {RequestsPerUnit: 2, Unit: 6}} {
		if got := got.Statuses[i].CurrentLimit; !proto.Equal(got, want) {
			t.Errorf("caller's limit: %v, want %v", got, want)
		}
	}
}

// A denied descriptor denies the request, and no descriptor is charged.
func TestRateLimit_Denied(t *testing.T) {
	r := newRig(t, rules)
	both := func() *ratelimitv3.RateLimitRequest {
		return request(describe("user", "alice"), describe("tenant", "t1"))
	}
	for range 3 {
		r.ask(both())
	}
	got := r.ask(both())
	if got.OverallCode != over || got.Statuses[0].Code != ok || got.Statuses[0].LimitRemaining != 17 || got.Statuses[1].Code != over || got.Statuses[1].LimitRemaining != 0 || got.Statuses[1].DurationUntilReset.Seconds != 1 {
		t.Errorf("%v", got)
	}
	if header(got, "retry-after") != "1" {
		t.Errorf("headers %v, want Retry-After 1", got.ResponseHeadersToAdd)
	}
	if m := got.DynamicMetadata.AsMap(); m["rule"] != "tenant" || m["reason"] != "token_bucket_exceeded" || m["descriptor"] != 1.0 {
		t.Errorf("metadata %v", m)
	}
	if got := r.ask(request(describe("user", "alice"))); got.Statuses[0].LimitRemaining != 16 {
		t.Errorf("%v: the denial charged the user", got)
	}
	r.clock.Advance(600_000)
	if got := r.ask(both()); got.OverallCode != ok {
		t.Errorf("%v after the wait", got)
	}
	never := r.ask(request(withHits(describe("tenant", "t2"), 4)))
	if never.OverallCode != over || never.Statuses[0].DurationUntilReset != nil || header(never, "retry-after") != "" {
		t.Errorf("never: %v", never)
	}
}

func TestRateLimit_Hits(t *testing.T) {
	r := newRig(t, rules)
	req := request(describe("user", "alice"), withHits(describe("tenant", "t1"), 0))
	req.HitsAddend = 5
	got := r.ask(req)
	if got.Statuses[0].LimitRemaining != 15 || got.Statuses[1].LimitRemaining != 3 {
		t.Errorf("%v: want 5 hits of the request, and a look", got)
	}
	negative := withHits(describe("user", "alice"), 3)
	negative.IsNegativeHits = true
	if got := r.ask(request(negative)); got.OverallCode != ok || got.Statuses[0].Code != ok || got.Statuses[0].CurrentLimit != nil {
		t.Errorf("refund: %v", got)
	}
	negative.HitsAddend = wrapperspb.UInt64(1000)
	if got := r.ask(request(negative, withHits(describe("tenant", "t1"), 4))); got.OverallCode != over {
		t.Errorf("refund with a denied descriptor: %v", got)
	}
	look := func() uint32 {
		return r.ask(request(withHits(describe("user", "alice"), 0))).Statuses[0].LimitRemaining
	}
	if n := look(); n != 18 {
		t.Errorf("%d left, want 18: a denied request refunds nothing", n)
	}
	r.ask(request(negative))
	if n := look(); n != 20 {
		t.Errorf("%d left, want a full bucket of 20", n)
	}
}

// A look before the work and a charge after it limit a client whose work costs more than the tokens left.
func TestRateLimit_ChargeAfter(t *testing.T) {
	for name, config := range map[string]string{
		"token bucket":   `"algorithm_config": {"rate": "10/10s", "burst": 10}`,
		"interval":       `"algorithm_config": {"rate": "10/10s", "burst": 10, "refill": "interval"}`,
		"fixed window":   `"algorithm": "fixed_window", "algorithm_config": {"tokens": 10, "window": "10s"}`,
		"sliding window": `"algorithm": "sliding_window", "algorithm_config": {"tokens": 10, "window": "10s"}`,
		"sliding log":    `"algorithm": "sliding_log", "algorithm_config": {"tokens": 10, "window": "10s"}`,
		"budget":         `"algorithm": "cost_based", "algorithm_config": {"budget": 10, "period": "10s"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, `{"rules": [{"name": "user", "limit_keys": ["descriptor:user"], `+config+`}]}`)
			look := func() *ratelimitv3.RateLimitResponse { return r.ask(request(withHits(describe("user", "alice"), 0))) }
			end := func(hits uint64) *ratelimitv3.RateLimitResponse {
				return r.ask(request(withHits(describe("user", "alice", envoyapi.ChargeKey, "1"), hits)))
			}
			if got := end(10); got.OverallCode != ok || look().OverallCode != ok {
				t.Errorf("no tokens left: %v, want OK until the bucket is in debt", got)
			}
			if got := end(7); got.OverallCode != ok || got.Statuses[0].LimitRemaining != 0 {
				t.Errorf("%v: want 7 missing tokens charged", got)
			}
			if got := look(); got.OverallCode != over || got.Statuses[0].DurationUntilReset.GetSeconds() == 0 {
				t.Errorf("%v: want a look in debt over the limit, with its wait", got)
			}
			if got := r.ask(request(describe("user", "alice"))); got.OverallCode != over {
				t.Errorf("%v: want a take in debt over the limit", got)
			}
			r.clock.Advance(20_000_000)
			if got := look(); got.OverallCode != ok {
				t.Errorf("%v: want the debt paid after 20 s", got)
			}
		})
	}
	r := newRig(t, `{"rules": [{"name": "user", "limit_keys": ["descriptor:user"], "algorithm_config": {"rate": "1/1s", "burst": 10, "max_reserved": 5}}]}`)
	marked := withHits(describe("user", "bob", envoyapi.ChargeKey, ""), 16)
	if got := r.ask(request(marked)); got.OverallCode != over {
		t.Errorf("%v: want a charge above max_reserved denied", got)
	}
	marked.HitsAddend.Value = 14
	if got := r.ask(request(marked, limited(describe("k", "v"), 1, typev3.RateLimitUnit_HOUR, 0))); got.OverallCode != ok || got.Statuses[1].LimitRemaining != 0 {
		t.Errorf("%v: want all descriptors of the request charged", got)
	}
	if got := r.ask(request(withHits(describe("user", "bob"), 0))); got.OverallCode != over {
		t.Errorf("%v: want 4 tokens owed", got)
	}
}

func limited(d *commonv3.RateLimitDescriptor, requests uint32, unit typev3.RateLimitUnit, multiplier uint32) *commonv3.RateLimitDescriptor {
	d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: requests, Unit: unit}
	if multiplier > 0 {
		d.Limit.UnitMultiplier = wrapperspb.UInt32(multiplier)
	}
	return d
}

// The limit of a caller applies in addition to the policy.
func TestRateLimit_CallersLimit(t *testing.T) {
	r := newRig(t, rules)
	for unit, seconds := range map[typev3.RateLimitUnit]int64{1: 1, 2: 60, 3: 3600, 4: 86400, 5: 30 * 86400, 6: 365 * 86400} {
		for _, multiplier := range []uint32{0, 1, 7} {
			got := r.ask(request(limited(describe("k", fmt.Sprint(unit, multiplier)), 1, unit, multiplier)))
			l := got.Statuses[0].CurrentLimit
			want := seconds * int64(max(multiplier, 1))
			if got.OverallCode != ok || l.GetRequestsPerUnit() != 1 || got.Statuses[0].DurationUntilReset.GetSeconds() != want {
				t.Errorf("%v × %d: %v, want a reset after %d s", unit, multiplier, got, want)
			}
		}
	}
	got := r.ask(request(limited(describe("tenant", "t1"), 1000, typev3.RateLimitUnit_SECOND, 0)))
	if got.Statuses[0].CurrentLimit.Name != "tenant" || got.Statuses[0].LimitRemaining != 2 {
		t.Errorf("%v: want the tighter limit of the policy", got)
	}
	tight := func() *ratelimitv3.RateLimitRequest {
		return request(limited(describe("user", "bob"), 1, typev3.RateLimitUnit_HOUR, 0))
	}
	r.ask(tight())
	if got := r.ask(tight()); got.OverallCode != over || got.Statuses[0].DurationUntilReset.Seconds != 3600 || header(got, "retry-after") != "3600" {
		t.Errorf("%v: want the caller's limit to deny", got)
	}
	if got := r.ask(request(limited(describe("x", "0"), 0, typev3.RateLimitUnit_DAY, 0))); got.OverallCode != over || got.Statuses[0].CurrentLimit.RequestsPerUnit != 0 {
		t.Errorf("0 requests: %v, want a denial", got)
	}
}

func TestRateLimit_InvalidRequests(t *testing.T) {
	r := newRig(t, rules)
	many := make([]*commonv3.RateLimitDescriptor, 10_000)
	for i := range many {
		many[i] = describe("user", "alice")
	}
	entries := &commonv3.RateLimitDescriptor{}
	for range envoyapi.MaxEntries + 1 {
		entries.Entries = append(entries.Entries, &commonv3.RateLimitDescriptor_Entry{Key: "k"})
	}
	for name, req := range map[string]*ratelimitv3.RateLimitRequest{
		"empty":              {},
		"domain":             {Descriptors: many[:1]},
		"no descriptors":     {Domain: "shop"},
		"10,000 descriptors": request(many...),
		"entries":            request(entries),
		"unit UNKNOWN":       request(limited(describe("k", "v"), 1, typev3.RateLimitUnit_UNKNOWN, 0)),
		"unit 99":            request(limited(describe("k", "v"), 1, 99, 0)),
		"multiplier 0": request(func() *commonv3.RateLimitDescriptor {
			d := limited(describe("k", "v"), 1, 1, 1)
			d.Limit.UnitMultiplier.Value = 0
			return d
		}()),
		"multiplier":     request(limited(describe("k", "v"), 1, typev3.RateLimitUnit_YEAR, math.MaxUint32)),
		"hits":           request(withHits(describe("user", "v"), math.MaxUint64)),
		"ambiguous keys": request(describe("a", "1", "a", "2", "a#2", "3")),
	} {
		if _, err := r.ShouldRateLimit(t.Context(), req); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, want InvalidArgument", name, err)
		}
	}
	if got := r.ask(request(describe("user", strings.Repeat("v", 1<<20)))); got.OverallCode != ok || got.Statuses[0].LimitRemaining != 19 {
		t.Errorf("1 MiB value: %v", got.OverallCode)
	}
	if got := r.ask(request(&commonv3.RateLimitDescriptor{}, describe("", ""), describe("no attribute\n", "v"))); got.OverallCode != ok || len(got.Statuses) != 3 {
		t.Errorf("empty entries and odd keys: %v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := r.ShouldRateLimit(ctx, request(describe("user", "alice"))); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("ended call: %v", err)
	}
}

// The values of a repeated key have numbers.
func TestRateLimit_RepeatedKeys(t *testing.T) {
	r := newRig(t, `{"rules": [{"name": "second", "match": {"descriptor:generic_key": "a"}, "limit_keys": ["descriptor:generic_key#2"], "algorithm_config": {"rate": "1/1h", "burst": 1}}]}`)
	req := func(second string) *ratelimitv3.RateLimitRequest {
		return request(describe("generic_key", "a", "generic_key", second))
	}
	if a, b, c := r.ask(req("x")), r.ask(req("y")), r.ask(req("x")); a.OverallCode != ok || b.OverallCode != ok || c.OverallCode != over {
		t.Errorf("%v, %v, %v", a, b, c)
	}
}

// Callers that choose limits cannot exhaust the table of the store.
func TestRateLimit_ManyLimits(t *testing.T) {
	count := uint32(1<<20 + 1)
	if testing.Short() {
		count /= 16
	}
	lim, clock, _, _ := newLimiter(t, rules)
	service, err := envoyapi.NewRateLimit(lim, envoyapi.RateLimitConfig{OmitFields: true})
	if err != nil {
		t.Fatal(err)
	}
	d := describe("k", "v")
	req := request(limited(d, 1, typev3.RateLimitUnit_SECOND, 0))
	for i := range count {
		d.Limit.RequestsPerUnit, d.Entries[0].Value = i+1, fmt.Sprint(i)
		got, err := service.ShouldRateLimit(t.Context(), req)
		if err != nil || got.OverallCode != ok || got.Statuses[0].CurrentLimit == nil {
			t.Fatalf("limit %d: %v, %v", i, got, err)
		}
		if i%1024 == 0 {
			clock.Advance(1_000_000)
		}
	}
}

func TestRateLimit_Decisions(t *testing.T) {
	const one = `"algorithm_config": {"rate": "1/1h", "burst": 1}`
	r := newRig(t, `{"rules": [
		{"name": "shadow", "match": {"descriptor:kind": "shadow"}, "mode": "shadow", "limit_keys": ["descriptor:kind"], `+one+`},
		{"name": "missing", "match": {"descriptor:kind": "missing"}, "on_missing": "deny", "limit_keys": ["descriptor:user"], `+one+`},
		{"name": "open", "match": {"descriptor:kind": "open"}, "limit_keys": ["descriptor:kind"], `+one+`},
		{"name": "closed", "match": {"descriptor:kind": "closed"}, "on_store_error": "closed", "limit_keys": ["descriptor:kind"], `+one+`},
		{"name": "local", "match": {"descriptor:kind": "local"}, "on_store_error": "local", "limit_keys": ["descriptor:kind"], `+one+`}],
		"overrides": [{"id": "bad", "action": "block", "reason": "r", "author": "a", "expires_at": "2999-01-01T00:00:00Z", "match": {"descriptor:kind": "blocked"}}]}`)
	kind := func(name string) *ratelimitv3.RateLimitResponse { return r.ask(request(describe("kind", name))) }
	for range 2 {
		if got := kind("shadow"); got.OverallCode != ok || got.Statuses[0].CurrentLimit != nil || got.DynamicMetadata != nil {
			t.Errorf("shadow: %v", got)
		}
	}
	if got := r.ask(request(describe("kind", "shadow"), describe("kind", "missing"))); got.OverallCode != over || got.Statuses[0].Code != ok || got.Statuses[1].Code != over || got.Statuses[1].DurationUntilReset != nil || got.DynamicMetadata.AsMap()["reason"] != "missing_attribute" {
		t.Errorf("missing: %v", got)
	}
	if got := kind("blocked"); got.OverallCode != over || got.DynamicMetadata.AsMap()["override"] != "bad" {
		t.Errorf("blocked: %v", got)
	}
	r.down.Store(true)
	if got := kind("open"); got.OverallCode != ok || got.Statuses[0].CurrentLimit != nil || got.DynamicMetadata.AsMap()["degraded"] != true {
		t.Errorf("open: %v", got)
	}
	if got := kind("closed"); got.OverallCode != over || got.Statuses[0].Code != over || header(got, "retry-after") != "1" || got.DynamicMetadata.AsMap()["reason"] != "store_error" {
		t.Errorf("closed: %v", got)
	}
	if first, second := kind("local"), kind("local"); first.OverallCode != ok || first.Statuses[0].CurrentLimit == nil || second.OverallCode != over {
		t.Errorf("local: %v, %v", first, second)
	}
	negative := describe("kind", "open")
	negative.IsNegativeHits = true
	if _, err := r.ShouldRateLimit(t.Context(), request(negative)); status.Code(err) != codes.Unavailable {
		t.Errorf("refund during an outage: %v", err)
	}
	glass := newRig(t, `{"rules": [{"name": "all", "limit_keys": [], `+one+`}], "break_glass": {"reason": "r", "expires_at": "2999-01-01T00:00:00Z"}}`)
	for range 2 {
		if got := glass.ask(request(describe("k", "v"))); got.OverallCode != ok || got.Statuses[0].CurrentLimit != nil || got.DynamicMetadata.AsMap()["override"] == nil {
			t.Errorf("break glass: %v", got)
		}
	}
}
