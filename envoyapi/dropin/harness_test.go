// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

const (
	ok   = ratelimitv3.RateLimitResponse_OK
	over = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

// start is a Tuesday, 10.25 seconds into a minute, and 13,870,000 seconds into a year of 365 days.
const start = bucket.Instant((1_700_000_000+10-1_700_000_000%60)*1_000_000 + 250_000)

// A rig is a service with a virtual clock.
type rig struct {
	testing.TB
	*dropin.Service
	clock *storetest.Clock
}

func newRig(tb testing.TB, yaml string, o dropin.Options) rig {
	tb.Helper()
	clock := storetest.NewClock()
	clock.Set(start)
	st, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	lim, err := mete.New(st, nil, mete.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	s, err := dropin.NewService(lim, o)
	if err != nil {
		tb.Fatal(err)
	}
	if yaml != "" {
		s.SetConfig(parse(tb, yaml))
	}
	return rig{tb, s, clock}
}

func parse(tb testing.TB, yaml string) *dropin.Config {
	tb.Helper()
	c, err := dropin.Parse([]dropin.File{{Name: "rules.yaml", Data: []byte(yaml)}}, dropin.ConfigOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// entries returns a descriptor of entries such as "key=value key2=value2".
func entries(text string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func withHits(d *commonv3.RateLimitDescriptor, hits uint64) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(hits)
	return d
}

func withLimit(d *commonv3.RateLimitDescriptor, requests uint32, unit typev3.RateLimitUnit) *commonv3.RateLimitDescriptor {
	d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: requests, Unit: unit}
	return d
}

func negative(d *commonv3.RateLimitDescriptor, hits uint64) *commonv3.RateLimitDescriptor {
	d.IsNegativeHits = true
	return withHits(d, hits)
}

// ask sends descriptors of the domain "shop".
func (r rig) ask(all ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitResponse {
	r.Helper()
	resp, err := r.ShouldRateLimit(r.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: all})
	if err != nil {
		r.Fatal(err)
	}
	return resp
}

// want asserts the codes and remaining requests of all descriptors, such as "OK 4, OVER_LIMIT 0, OK -" (- without a
// limit), and the overall code.
func (r rig) want(resp *ratelimitv3.RateLimitResponse, overall ratelimitv3.RateLimitResponse_Code, statuses string) {
	r.Helper()
	if got := show(resp); resp.OverallCode != overall || got != statuses {
		r.Errorf("%v: %s, want %v: %s", resp.OverallCode, got, overall, statuses)
	}
}

// counter returns the value of one counter.
func (r rig) counter(name string) uint64 {
	r.Helper()
	for _, c := range r.Counters() {
		if c.Name == name {
			return c.Value
		}
	}
	r.Errorf("no counter %q", name)
	return 0
}

// probes returns descriptors of several forms.
func probes() []*commonv3.RateLimitDescriptor {
	return []*commonv3.RateLimitDescriptor{
		entries("a=b"), entries("user=alice"), entries("k=v"), entries("k=v l=m"), entries(""), withLimit(entries("x=y"), 3, typev3.RateLimitUnit_DAY),
		negative(entries("user=alice"), 3), withHits(entries("path=xyz"), 1<<63), nil,
	}
}
