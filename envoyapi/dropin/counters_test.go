// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/metehq/mete/envoyapi/dropin"
)

// nonzero returns the counters of limits above 0, without their common prefix.
func (r rig) nonzero() map[string]uint64 {
	made := map[string]uint64{}
	for _, c := range r.Counters() {
		if name, ok := strings.CutPrefix(c.Name, "ratelimit.service.rate_limit."); ok && c.Value > 0 {
			made[name] = c.Value
		}
	}
	return made
}

func (r rig) wantCounters(want map[string]uint64) {
	r.Helper()
	if got := r.nonzero(); !maps.Equal(got, want) {
		r.Errorf("counters %v, want %v", got, want)
	}
}

// Hits that cross a limit are partly over and partly near it. The near limit is 0.8 of the limit.
func TestCounters_Hits(t *testing.T) {
	r := newRig(t, "domain: shop\ndescriptors: [{key: k, value: v, rate_limit: {unit: day, requests_per_unit: 10}}]", dropin.Options{})
	const k = "shop.k_v."
	ask := func(hits uint64) { r.ask(withHits(entries("k=v"), hits)) }
	ask(7)
	r.wantCounters(map[string]uint64{k + "total_hits": 7, k + "within_limit": 7})
	ask(2)
	r.wantCounters(map[string]uint64{k + "total_hits": 9, k + "within_limit": 9, k + "near_limit": 1})
	ask(5)
	r.wantCounters(map[string]uint64{k + "total_hits": 14, k + "within_limit": 9, k + "near_limit": 2, k + "over_limit": 4})
	ask(3)
	r.wantCounters(map[string]uint64{k + "total_hits": 17, k + "within_limit": 9, k + "near_limit": 2, k + "over_limit": 7})
	r.ask(negative(entries("k=v"), 17))
	ask(12)
	r.wantCounters(map[string]uint64{k + "total_hits": 29, k + "within_limit": 9, k + "near_limit": 4, k + "over_limit": 9, k + "total_negative_hits": 17})
	for _, c := range r.Counters() {
		if strings.HasSuffix(c.Name, "k_v.over_limit_with_local_cache") && c.Value == 0 {
			return
		}
	}
	t.Error("over_limit_with_local_cache is missing")
}

// Names of limits have the descriptor's path, the values of the request, or the patterns.
func TestCounters_Names(t *testing.T) {
	r := newRig(t, `
domain: shop
descriptors:
- key: plain
  rate_limit: {unit: day, requests_per_unit: 10}
- key: detailed
  value: x*
  descriptors:
  - {key: user, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 10}}
- key: metric
  value_to_metric: true
  descriptors:
  - {key: user, rate_limit: {unit: day, requests_per_unit: 10}}
- key: wild
  value: a*
  value_to_metric: true
  rate_limit: {unit: day, requests_per_unit: 10}
- key: shared
  value: a*
  share_threshold: true
  value_to_metric: true
  detailed_metric: true
  rate_limit: {unit: day, requests_per_unit: 10}
  descriptors:
  - {key: user, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 10}}
`, dropin.Options{})
	for text, name := range map[string]string{
		"plain=v":            "shop.plain",
		"detailed=xy user=u": "shop.detailed_xy.user_u",
		"detailed=xz user=":  "shop.detailed_xz.user_",
		"metric=m user=u":    "shop.metric_m.user",
		"wild=abc":           "shop.wild_abc",
		"shared=abc":         "shop.shared_a*",
		"shared=abd user=":   "shop.shared_a*.user",
		"shared=abd user=v":  "shop.shared_a*.user_v",
	} {
		before := r.nonzero()
		r.ask(entries(text))
		after := r.nonzero()
		if after[name+".total_hits"] != before[name+".total_hits"]+1 || len(after) != len(before)+2 {
			t.Errorf("%q: counters %v, want one hit of %s", text, after, name)
		}
	}
	r.ask(withLimit(entries("ip=10.0.0.1 path=a:b|c none="), 5, 1))
	if got := r.counter("ratelimit.service.rate_limit.shop.ip_10_0_0_1.path_a_b_c.none.total_hits"); got != 1 {
		t.Errorf("a caller's limit has %d hits, want 1", got)
	}
}

// Clients cannot create more than a bounded number of names.
func TestCounters_NamesAreBounded(t *testing.T) {
	r := newRig(t, "domain: shop\ndescriptors: [{key: k, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}]", dropin.Options{})
	r.ask(entries("k=" + strings.Repeat("v", 2000)))
	r.wantCounters(map[string]uint64{"shop.k.total_hits": 1, "shop.k.within_limit": 1, "shop.k.near_limit": 1})
	for i := range dropin.MaxNames + 5 {
		r.ask(entries(fmt.Sprint("k=", i)))
	}
	if got := r.counter("ratelimit.service.rate_limit.shop.k.total_hits"); got != 6 {
		t.Errorf("the limit has %d hits of its own, want 6", got)
	}
	r.ask(withLimit(entries("a=b"), 5, 1))
	r.counter("ratelimit.service.rate_limit.shop.other.total_hits")
	for i := range 3 {
		if _, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: fmt.Sprint("d", i), Descriptors: []*commonv3.RateLimitDescriptor{nil}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.counter("ratelimit.service.rate_limit.other.domain_not_found"); got != 3 {
		t.Errorf("unknown domains have %d descriptors, want 3", got)
	}
}

func TestCounters_Service(t *testing.T) {
	r := newRig(t, "domain: shop", dropin.Options{})
	r.SetConfig(parse(t, "domain: shop"))
	r.CountConfigError()
	if loaded, failed := r.counter("ratelimit.service.config_load_success"), r.counter("ratelimit.service.config_load_error"); loaded != 2 || failed != 1 {
		t.Errorf("loaded %d, failed %d, want 2 and 1", loaded, failed)
	}
}
