// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/metehq/mete/envoyapi/dropin"
)

// A configuration is an error or decides requests, and its dump does not change.
func FuzzParse(f *testing.F) {
	for _, yaml := range []string{matching, modes, "domain: a\n<<: {domain: b}", "domain: a\ndescriptors: &a\n- <<: *a", "{\"domain\": \"a\"}", "domain: a\ndescriptors: [{key: k, metadata: {<<: {a: 1}, b: .inf}}]"} {
		f.Add([]byte(yaml))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := dropin.File{Name: "f.yaml", Data: data}
		c, err := dropin.Parse([]dropin.File{file}, dropin.ConfigOptions{})
		if err != nil {
			return
		}
		again, err := dropin.Parse([]dropin.File{file}, dropin.ConfigOptions{MergeDomains: true})
		if err != nil || again.Dump() != c.Dump() {
			t.Fatalf("error %v, dump %q and then %q", err, c.Dump(), again.Dump())
		}
		r := newRig(t, "", dropin.Options{DynamicMetadata: true})
		r.SetConfig(c)
		for _, domain := range c.Domains() {
			if _, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: probes()}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A message of a control plane is an error or decides requests.
func FuzzFromProto(f *testing.F) {
	for _, c := range []*rlsconf.RateLimitConfig{
		{Domain: "shop"},
		{Name: "n", Domain: "shop", Descriptors: []*rlsconf.RateLimitDescriptor{{Key: "a", Value: "*", QuotaMode: true,
			RateLimit: &rlsconf.RateLimitPolicy{Unit: 1, RequestsPerUnit: 1, Name: "n", Replaces: []*rlsconf.RateLimitReplace{{Name: "m"}}}}}},
	} {
		data, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var message rlsconf.RateLimitConfig
		if proto.Unmarshal(data, &message) != nil {
			return
		}
		c, err := dropin.FromProto([]*rlsconf.RateLimitConfig{&message}, dropin.ConfigOptions{})
		if err != nil {
			return
		}
		r := newRig(t, "", dropin.Options{Algorithm: dropin.TokenBucket, DynamicMetadata: true})
		r.SetConfig(c)
		if _, err := r.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: message.Domain, Descriptors: probes()}); err != nil {
			t.Fatal(err)
		}
	})
}

// A request has a status for each descriptor, or the code INVALID_ARGUMENT. Statuses agree with the overall code.
func FuzzShouldRateLimit(f *testing.F) {
	for _, req := range []*ratelimitv3.RateLimitRequest{
		{Domain: "shop", Descriptors: probes()},
		{Domain: "shop", HitsAddend: 1 << 31, Descriptors: probes()},
		{Domain: "other", Descriptors: probes()},
	} {
		data, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var req ratelimitv3.RateLimitRequest
		if proto.Unmarshal(data, &req) != nil {
			return
		}
		for _, o := range []dropin.Options{
			{DynamicMetadata: true, Headers: &dropin.HeaderNames{Limit: "a", Remaining: "b", Reset: "c"}},
			{Algorithm: dropin.TokenBucket}, {StopCounting: true, QuotaMode: true},
		} {
			r := newRig(t, matching, o)
			for range 2 {
				resp, err := r.ShouldRateLimit(t.Context(), &req)
				if err != nil {
					if status.Code(err) != codes.InvalidArgument {
						t.Fatal(err)
					}
					continue
				}
				exceeded := false
				for _, st := range resp.Statuses {
					exceeded = exceeded || st.Code == over
					if st.Code == over && st.LimitRemaining > 0 || st.LimitRemaining > st.GetCurrentLimit().GetRequestsPerUnit() && st.CurrentLimit != nil {
						t.Fatalf("status %v", st)
					}
				}
				if len(resp.Statuses) != len(req.Descriptors) || !o.QuotaMode && (resp.OverallCode == over) != exceeded {
					t.Fatalf("answer %v to %v", resp, &req)
				}
				if _, err := proto.Marshal(resp); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
