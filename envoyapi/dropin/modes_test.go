// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

const modes = `
domain: shop
descriptors:
- {key: plain, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: shadow, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: quota1, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: quota2, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: free, rate_limit: {unlimited: true}}
- {key: weak, rate_limit: {unit: minute, requests_per_unit: 1, name: weak}}
- {key: middle, rate_limit: {unit: minute, requests_per_unit: 5, name: middle, replaces: [{name: weak}]}}
- {key: strong, rate_limit: {unlimited: true, replaces: [{name: middle}]}}
`

func TestModes_Shadow(t *testing.T) {
	r := newRig(t, modes, dropin.Options{})
	r.want(r.ask(entries("shadow=s")), ok, "OK 0")
	resp := r.ask(entries("shadow=s"))
	r.want(resp, ok, "OK 0")
	if resp.Statuses[0].CurrentLimit == nil {
		t.Error("the status has no limit")
	}
	const name = "ratelimit.service.rate_limit.shop.shadow."
	if over, shadow := r.counter(name+"over_limit"), r.counter(name+"shadow_mode"); over != 1 || shadow != 1 {
		t.Errorf("over_limit %d, shadow_mode %d, want 1 and 1", over, shadow)
	}

	r = newRig(t, modes, dropin.Options{ShadowMode: true})
	r.want(r.ask(entries("quota1=q")), ok, "OK 0")
	r.want(r.ask(entries("quota1=q")), ok, "OVER_LIMIT 0")
	if got := r.counter("ratelimit.service.global_shadow_mode"); got != 1 {
		t.Errorf("global_shadow_mode is %d, want 1", got)
	}
}

func TestModes_Quota(t *testing.T) {
	r := newRig(t, modes, dropin.Options{})
	both := []*commonv3.RateLimitDescriptor{entries("quota1=q"), entries("quota2=q")}
	r.want(r.ask(both...), ok, "OK 0, OK 1")
	r.want(r.ask(both...), ok, "OVER_LIMIT 0, OK 0")
	r.want(r.ask(both...), over, "OVER_LIMIT 0, OVER_LIMIT 0")
	r.want(r.ask(entries("quota1=q"), entries("plain=p")), over, "OVER_LIMIT 0, OK 1") // all limits of quotas
	r.want(r.ask(entries("quota1=q"), entries("quota2=new"), entries("plain=p"), entries("plain=p")), over, "OVER_LIMIT 0, OK 1, OK 0, OVER_LIMIT 0")

	r = newRig(t, modes, dropin.Options{QuotaMode: true})
	r.want(r.ask(withHits(entries("plain=p"), 3), entries("none=n")), ok, "OVER_LIMIT 0, OK -") // counts as a quota
	r.want(r.ask(entries("plain=p")), over, "OVER_LIMIT 0")
	r.want(r.ask(entries("plain=p"), entries("free=f")), over, "OVER_LIMIT 0, OK 4294967295")
}

func TestModes_Replaces(t *testing.T) {
	for _, algorithm := range []dropin.Algorithm{dropin.FixedWindow, dropin.TokenBucket} {
		r := newRig(t, modes, dropin.Options{Algorithm: algorithm})
		r.want(r.ask(entries("weak=w"), entries("middle=m")), ok, "OK -, OK 4")
		r.want(r.ask(entries("weak=w")), ok, "OK 0") // was not counted
		r.want(r.ask(entries("weak=w"), entries("middle=m"), entries("strong=s")), ok, "OK -, OK -, OK 4294967295")
		r.want(r.ask(entries("weak=w"), entries("strong=s")), over, "OVER_LIMIT 0, OK 4294967295")
	}
}

func TestStopCounting(t *testing.T) {
	r := newRig(t, modes, dropin.Options{StopCounting: true})
	r.want(r.ask(entries("plain=p"), entries("weak=w")), ok, "OK 1, OK 0")
	r.want(r.ask(entries("plain=p"), entries("weak=w")), over, "OK 1, OVER_LIMIT 0") // only weak counted
	r.want(r.ask(entries("plain=p")), ok, "OK 0")
	r.want(r.ask(negative(entries("weak=w"), 2)), ok, "OK 1")
}

func TestHeaders(t *testing.T) {
	names := &dropin.HeaderNames{Limit: "RateLimit-Limit", Remaining: "RateLimit-Remaining", Reset: "RateLimit-Reset"}
	r := newRig(t, modes, dropin.Options{Headers: names})
	check := func(resp *ratelimitv3.RateLimitResponse, want string) {
		t.Helper()
		got := ""
		for _, h := range resp.ResponseHeadersToAdd {
			got += h.Key + " " + h.Value + "; "
		}
		if got != want {
			t.Errorf("headers %q, want %q", got, want)
		}
	}
	check(r.ask(entries("middle=m"), entries("plain=p"), entries("free=f")), "RateLimit-Limit 2; RateLimit-Remaining 1; RateLimit-Reset 50; ")
	check(r.ask(entries("none=n"), entries("free=f")), "")
	check(r.ask(withHits(entries("plain=p"), 9), entries("quota1=q")), "RateLimit-Limit 2; RateLimit-Remaining 0; RateLimit-Reset 50; ")
	r.clock.Advance(49_000_000)
	check(r.ask(entries("quota1=q"), entries("plain=p")), "RateLimit-Limit 2; RateLimit-Remaining 0; RateLimit-Reset 1; ")
}

func TestDynamicMetadata(t *testing.T) {
	r := newRig(t, `
domain: shop
descriptors:
- key: a
  detailed_metric: true
  metadata: {team: x, nested: {one: 1, list: [yes, "2", null, 1.5]}}
  rate_limit: {unit: minute, requests_per_unit: 100}
- key: b
  metadata: {team: z, nested: {one: 3, two: 2}}
  rate_limit: {unit: minute, requests_per_unit: 100}
- key: c
  metadata: {secret: true}
  rate_limit: {unlimited: true}
`, dropin.Options{DynamicMetadata: true})
	check := func(want string, all ...*commonv3.RateLimitDescriptor) {
		t.Helper()
		resp, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: all})
		if err != nil {
			t.Fatal(err)
		}
		var wanted structpb.Struct
		if err := protojson.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(resp.DynamicMetadata, &wanted) {
			t.Errorf("metadata %v, want %v", protojson.Format(resp.DynamicMetadata), want)
		}
	}
	check(`{"domain": "shop", "descriptors": [{"entries": ["a=1"], "hitsAddend": 0}], "metadata": {"team": "x", "nested": {"one": 1, "list": [true, "2", null, 1.5]}}}`,
		withHits(entries("a=1"), 0))
	for range 2 { // an answer does not change the configuration
		check(`{"domain": "shop", "descriptors": [{"entries": ["a=1"]}, {"entries": ["b=2", "d="]}, {"entries": ["b=3"], "hitsAddend": 1}, {"entries": ["c=4"]}],
			"metadata": {"team": "x", "nested": {"one": 1, "two": 2, "list": [true, "2", null, 1.5]}}}`,
			entries("a=1"), entries("b=2 d="), withHits(entries("b=3"), 1), entries("c=4"))
	}
}

// If the store does not answer, the request fails, or local buckets decide.
func TestStoreFails(t *testing.T) {
	ask := func(config mete.Config, o dropin.Options) (*dropin.Service, *ratelimitv3.RateLimitResponse, error) {
		lim, err := mete.New(brokenStore{}, nil, config)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dropin.NewService(lim, o)
		if err != nil {
			t.Fatal(err)
		}
		s.SetConfig(parse(t, modes))
		resp, err := s.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{entries("middle=m")}})
		return s, resp, err
	}
	for _, algorithm := range []dropin.Algorithm{dropin.FixedWindow, dropin.TokenBucket} {
		for _, then := range []policy.OnStoreError{policy.OnStoreErrorOpen, policy.OnStoreErrorClosed} {
			s, _, err := ask(mete.Config{OnStoreError: then}, dropin.Options{Algorithm: algorithm})
			if status.Code(err) != codes.Unavailable {
				t.Errorf("%v: %v, want UNAVAILABLE", then, err)
			}
			if got := (rig{TB: t, Service: s}).counter("ratelimit.service.call.should_rate_limit.redis_error"); got != 1 {
				t.Errorf("redis_error is %d, want 1", got)
			}
		}
		local, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, resp, err := ask(mete.Config{OnStoreError: policy.OnStoreErrorLocal, Local: local, Nodes: func() int { return 2 }}, dropin.Options{Algorithm: algorithm})
		if err != nil || resp.Statuses[0].LimitRemaining != 1 {
			t.Errorf("%v, error %v, want 1 of half of 5 requests left", resp, err)
		}
	}
}

type brokenStore struct{}

var errBroken = errors.New("broken")

func (brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, store.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, errBroken
}
func (brokenStore) Refund(context.Context, []store.Refund, string) error { return errBroken }
func (brokenStore) Reset(context.Context, []string) error                { return errBroken }

func TestTokenBucket(t *testing.T) {
	r := newRig(t, modes, dropin.Options{Algorithm: dropin.TokenBucket})
	resp := r.ask(withHits(entries("middle=m"), 4))
	r.want(resp, ok, "OK 1")
	if got := resp.Statuses[0].DurationUntilReset.GetSeconds(); got != 48 {
		t.Errorf("the bucket is full after %d s, want 48", got)
	}
	resp = r.ask(withHits(entries("middle=m"), 3), entries("plain=p"))
	r.want(resp, over, "OVER_LIMIT 0, OK 2") // nothing was taken
	if got := resp.Statuses[0].DurationUntilReset.GetSeconds(); got != 24 {
		t.Errorf("two tokens arrive after %d s, want 24", got)
	}
	r.clock.Advance(24_000_000)
	r.want(r.ask(withHits(entries("middle=m"), 3), entries("plain=p")), ok, "OK 0, OK 1")
	r.want(r.ask(negative(entries("middle=m"), 2)), ok, "OK 2")
	r.want(r.ask(withHits(entries("middle=m"), 6)), over, "OVER_LIMIT 0")
	r.want(r.ask(withHits(entries("middle=m"), 0)), ok, "OK 2")

	// A limit with shadow_mode takes nothing for a denied request.
	r.want(r.ask(entries("shadow=s"), withHits(entries("plain=p"), 2)), over, "OK 1, OVER_LIMIT 0")
	r.want(r.ask(entries("shadow=s"), entries("plain=p")), ok, "OK 0, OK 0")
	r.want(r.ask(entries("shadow=s")), ok, "OK 0")

	// A limit with quota_mode denies only with the others.
	both := []*commonv3.RateLimitDescriptor{entries("quota1=q"), entries("quota2=q")}
	r.want(r.ask(both...), ok, "OK 0, OK 1")
	r.want(r.ask(both...), ok, "OVER_LIMIT 0, OK 0")
	r.want(r.ask(both...), over, "OVER_LIMIT 0, OVER_LIMIT 0")

	zero := withLimit(entries("k=v"), 0, 1)
	r.want(r.ask(zero), over, "OVER_LIMIT 0")
	r.want(r.ask(withHits(zero, 0)), ok, "OK 0")

	many := make([]*commonv3.RateLimitDescriptor, 65)
	for i := range many {
		many[i] = entries(fmt.Sprint("plain=n", i))
	}
	_, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: many})
	if want := "dropin: too many token buckets: 65: a request has at most 64, because it takes from all or none"; status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestNewService_Refuses(t *testing.T) {
	lim, err := mete.New(storetest.NewModel(storetest.NewClock().Now), nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dropin.NewService(nil, dropin.Options{}); err == nil {
		t.Error("a service without a limiter")
	}
	for _, o := range []dropin.Options{{Algorithm: 2}, {NearLimitRatio: -1}, {NearLimitRatio: 1.5}, {KeyPrefix: string(make([]byte, 257))}, {Headers: &dropin.HeaderNames{Limit: "a"}}} {
		if _, err := dropin.NewService(lim, o); err == nil {
			t.Errorf("a service with %+v", o)
		}
	}
}

// TestMetadata_KeysOfYAML11 has names that package yaml.v2 gives: the value of a nested key decides.
func TestMetadata_KeysOfYAML11(t *testing.T) {
	r := newRig(t, `
domain: shop
descriptors:
- key: a
  rate_limit: {unit: day, requests_per_unit: 9}
  metadata: {y: 1, <<: {on: 2}, nested: {y: 3, 0x10: 4, "off": 5, <<: {no: 6}}}
`, dropin.Options{DynamicMetadata: true})
	resp := r.ask(entries("a=1"))
	want := map[string]any{"y": 1.0, "on": 2.0, "nested": map[string]any{"true": 3.0, "16": 4.0, "off": 5.0, "false": 6.0}}
	if got := resp.DynamicMetadata.AsMap()["metadata"]; !reflect.DeepEqual(got, want) {
		t.Errorf("metadata %v, want %v", got, want)
	}
}
