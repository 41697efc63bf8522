// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"fmt"
	"math"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/envoyapi/dropin"
)

// A window ends at a multiple of its length, and denied hits count in it.
func TestWindow_CountsDeniedHits(t *testing.T) {
	r := newRig(t, matching, dropin.Options{})
	r.want(r.ask(entries("user=bob")), ok, "OK 1")
	r.want(r.ask(withHits(entries("user=bob"), 5)), over, "OVER_LIMIT 0")
	r.want(r.ask(negative(entries("user=bob"), 5)), ok, "OK 1") // the denied hits had counted
	r.want(r.ask(entries("user=bob")), ok, "OK 0")
	r.want(r.ask(entries("user=bob")), over, "OVER_LIMIT 0")
	r.clock.Advance(49_750_000 - 1)
	r.want(r.ask(entries("user=bob")), over, "OVER_LIMIT 0")
	r.clock.Advance(1)
	r.want(r.ask(entries("user=bob")), ok, "OK 1")
}

func TestWindow_Units(t *testing.T) {
	r := newRig(t, "domain: shop", dropin.Options{})
	now := int64(start) / 1_000_000
	for unit, seconds := range map[typev3.RateLimitUnit]int64{
		typev3.RateLimitUnit_SECOND: 1, typev3.RateLimitUnit_MINUTE: 60, typev3.RateLimitUnit_HOUR: 3600,
		typev3.RateLimitUnit_DAY: 86400, 7: 7 * 86400, typev3.RateLimitUnit_MONTH: 30 * 86400,
		typev3.RateLimitUnit_YEAR: 365 * 86400,
	} {
		for _, hits := range []uint64{0, 2} {
			resp := r.ask(withHits(withLimit(entries("k=v"), 1, unit), hits))
			want, st := ok, resp.Statuses[0]
			if hits == 2 {
				want = over
			}
			if got := st.DurationUntilReset.AsDuration().Seconds(); resp.OverallCode != want || got != float64(seconds-now%seconds) ||
				int(st.CurrentLimit.Unit) != int(unit) {
				t.Errorf("%v with %d hits: %v, reset %v, want %v, %d", unit, hits, resp, got, want, seconds-now%seconds)
			}
		}
	}
}

// All descriptors count even if one is over. The same counter twice counts twice, one after the other.
func TestWindow_SeveralDescriptors(t *testing.T) {
	r := newRig(t, matching, dropin.Options{})
	r.want(r.ask(entries("user=alice"), entries("tenant=t"), entries("none=n")), ok, "OK 0, OK 6, OK -")
	r.want(r.ask(entries("user=alice"), entries("tenant=t"), entries("none=n")), over, "OVER_LIMIT 0, OK 5, OK -")
	r.want(r.ask(entries("tenant=t"), withHits(entries("tenant=t"), 3), entries("tenant=t"), entries("tenant=t")), over, "OK 4, OK 1, OK 0, OVER_LIMIT 0")
	r.want(r.ask(entries("user=u"), negative(entries("user=u"), 7), entries("user=u")), ok, "OK 1, OK 2, OK 1")
	many := make([]*commonv3.RateLimitDescriptor, 200) // more than one request to the store has
	for i := range many {
		many[i] = entries(fmt.Sprint("user=n", i%100))
	}
	resp := r.ask(many...)
	for i, st := range resp.Statuses {
		if want := uint32(1 - i/100); st.LimitRemaining != want || st.Code != ok {
			t.Errorf("descriptor %d: %v, want OK %d", i, st, want)
		}
	}
}

// The hits of a descriptor replace the hits of the request, and 0 only looks.
func TestWindow_Hits(t *testing.T) {
	r := newRig(t, matching, dropin.Options{})
	ask := func(hits uint32, d *commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitResponse {
		resp, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", HitsAddend: hits, Descriptors: []*commonv3.RateLimitDescriptor{d}})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	r.want(ask(4, entries("tenant=t")), ok, "OK 3")
	r.want(ask(4, withHits(entries("tenant=t"), 1)), ok, "OK 2")
	r.want(ask(4, withHits(entries("tenant=t"), 0)), ok, "OK 2")
	r.want(ask(0, entries("tenant=t")), ok, "OK 1")
	r.want(ask(2, entries("tenant=t")), over, "OVER_LIMIT 0")
	r.want(ask(0, withHits(entries("tenant=t"), 0)), over, "OVER_LIMIT 0")
	r.want(ask(0, negative(entries("tenant=t"), 100)), ok, "OK 7") // never below 0
	r.want(ask(0, negative(entries("tenant=new"), 1)), ok, "OK 7")
}

// Hits beyond every limit saturate, and take nothing from other counters.
func TestWindow_Saturates(t *testing.T) {
	r := newRig(t, "domain: shop", dropin.Options{})
	largest := func(key string) *commonv3.RateLimitDescriptor {
		return withLimit(entries(key), math.MaxUint32, typev3.RateLimitUnit_YEAR)
	}
	r.want(r.ask(withHits(largest("k=v"), math.MaxUint32)), ok, "OK 0")
	for i := range 5 {
		r.want(r.ask(withHits(largest("k=v"), math.MaxUint64), largest("k=other")), over, "OVER_LIMIT 0, OK "+
			[]string{"4294967294", "4294967293", "4294967292", "4294967291", "4294967290"}[i])
	}
	r.want(r.ask(withHits(largest("k=v"), math.MaxUint64), withHits(largest("k=v"), math.MaxUint64)), over, "OVER_LIMIT 0, OVER_LIMIT 0")
}

// A configuration with another number keeps the count of the window.
func TestWindow_NewConfigKeepsCounts(t *testing.T) {
	config := func(requests string) string {
		return "domain: shop\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: " + requests + "}}]"
	}
	r := newRig(t, config("5"), dropin.Options{})
	r.want(r.ask(withHits(entries("k=v"), 7)), over, "OVER_LIMIT 0")
	r.SetConfig(parse(t, config("10")))
	r.want(r.ask(entries("k=v")), ok, "OK 2")
	r.SetConfig(parse(t, config("3")))
	r.want(r.ask(withHits(entries("k=v"), 0)), over, "OVER_LIMIT 0")
}

func TestCallerLimit(t *testing.T) {
	r := newRig(t, matching, dropin.Options{QuotaMode: false})
	r.want(r.ask(withLimit(entries("user=alice"), 3, typev3.RateLimitUnit_HOUR)), ok, "OK 2")
	r.want(r.ask(withLimit(entries("not=configured"), 1, typev3.RateLimitUnit_HOUR)), ok, "OK 0")
	r.want(r.ask(withLimit(entries("not=configured"), 1, typev3.RateLimitUnit_HOUR)), over, "OVER_LIMIT 0")
	r.want(r.ask(withLimit(entries("user=alice"), 0, typev3.RateLimitUnit_HOUR)), over, "OVER_LIMIT 0")
	r.want(r.ask(withLimit(entries(""), 3, typev3.RateLimitUnit_HOUR)), ok, "OK 2")

	// Unlike the reference server, the service honors unit_multiplier.
	half := withLimit(entries("k=half"), 1, typev3.RateLimitUnit_SECOND)
	half.Limit.UnitMultiplier = wrapperspb.UInt32(30)
	resp := r.ask(half)
	r.want(resp, ok, "OK 0")
	if got := resp.Statuses[0]; got.DurationUntilReset.GetSeconds() != 20 || got.CurrentLimit.UnitMultiplier.GetValue() != 30 {
		t.Errorf("status %v, want a reset after 20 seconds", got)
	}
	r.clock.Advance(20_000_000 - 250_001)
	r.want(r.ask(half), over, "OVER_LIMIT 0")
	r.clock.Advance(1)
	r.want(r.ask(half), ok, "OK 0")

	// An unknown domain ignores the limit of its caller.
	resp, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "unknown", Descriptors: []*commonv3.RateLimitDescriptor{
		withLimit(entries("a=b"), 0, typev3.RateLimitUnit_UNKNOWN)}})
	if err != nil {
		t.Fatal(err)
	}
	r.want(resp, ok, "OK -")
	if got := r.counter("ratelimit.service.rate_limit.unknown.domain_not_found"); got != 1 {
		t.Errorf("domain_not_found is %d, want 1", got)
	}
}

func TestShouldRateLimit_Refuses(t *testing.T) {
	unit := func(unit typev3.RateLimitUnit, times uint32) []*commonv3.RateLimitDescriptor {
		d := withLimit(entries("k=v"), 1, unit)
		d.Limit.UnitMultiplier = wrapperspb.UInt32(times)
		return []*commonv3.RateLimitDescriptor{entries("a=b"), d}
	}
	for _, tc := range []struct {
		domain      string
		descriptors []*commonv3.RateLimitDescriptor
		want        string
	}{
		{"", unit(1, 1), "dropin: the domain is empty: set domain in the rate limit filter"},
		{"shop", nil, "dropin: the request has no descriptors"},
		{"shop", make([]*commonv3.RateLimitDescriptor, 10_000), "dropin: the request has 10000 descriptors: must have at most 1024"},
		{"shop", unit(0, 1), "dropin: descriptor 1: limit: unit UNKNOWN is unknown: use second, minute, hour, day, week, month or year"},
		{"shop", unit(99, 1), "dropin: descriptor 1: limit: unit 99 is unknown: use second, minute, hour, day, week, month or year"},
		{"shop", unit(1, 0), "dropin: descriptor 1: limit: unit_multiplier is 0: use 1 or more, or leave it out"},
		{"shop", unit(typev3.RateLimitUnit_YEAR, 36), "dropin: descriptor 1: limit: a window of 36 units of 31536000 seconds: must be at most 1125899906 seconds"},
	} {
		for _, algorithm := range []dropin.Algorithm{dropin.FixedWindow, dropin.TokenBucket} {
			r := newRig(t, matching, dropin.Options{Algorithm: algorithm})
			_, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: tc.domain, Descriptors: tc.descriptors})
			if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tc.want {
				t.Errorf("error %v, want INVALID_ARGUMENT: %s", err, tc.want)
			}
			if got := r.counter("ratelimit.service.call.should_rate_limit.service_error"); got != 1 {
				t.Errorf("%s: service_error is %d, want 1", tc.want, got)
			}
		}
	}
	r := newRig(t, "", dropin.Options{})
	_, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: unit(1, 1)})
	if status.Code(err) != codes.Unavailable || r.Config() != nil {
		t.Errorf("without a configuration: %v", err)
	}
	r = newRig(t, matching, dropin.Options{}) // missing messages are empty
	r.want(r.ask(nil, &commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{nil}}), ok, "OK -, OK -")
}
