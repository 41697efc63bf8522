// SPDX-License-Identifier: Apache-2.0

package envoy

import (
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/envoyapi/dropin"
)

const (
	allow = ratelimitv3.RateLimitResponse_OK
	deny  = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

// hour is the start of an hour, and so of a minute.
var hour = time.Unix(1_800_000_000, 0)

// entries returns a descriptor of pairs of a key and a value.
func entries(pairs ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func requestOf(descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: descriptors}
}

// A versus has the original and mete with the same configuration.
type versus struct {
	*testing.T
	o *original
	m *ours
}

// load replaces both configurations. The limits below the domain shop have the form of YAML.
func (v versus) load(descriptors string) {
	v.Helper()
	file := dropin.File{Name: "shop.yaml", Data: []byte("domain: shop\ndescriptors:\n" + descriptors)}
	if err := v.o.load(file); err != nil {
		v.Fatal(err)
	}
	if err := v.m.load(file); err != nil {
		v.Fatal(err)
	}
}

// answers returns the answers of both to a request.
func (v versus) answers(req *ratelimitv3.RateLimitRequest) (theirs, ours *ratelimitv3.RateLimitResponse) {
	v.Helper()
	theirs, err := v.o.answer(hour, req)
	if err != nil {
		v.Fatalf("theirs: %v", err)
	}
	if ours, err = v.m.answer(hour, req); err != nil {
		v.Fatalf("ours: %v", err)
	}
	return theirs, ours
}

// wantCodes compares the codes of the answers to a request.
func (v versus) wantCodes(req *ratelimitv3.RateLimitRequest, theirs, ours ratelimitv3.RateLimitResponse_Code) {
	v.Helper()
	if a, b := v.answers(req); a.OverallCode != theirs || b.OverallCode != ours {
		v.Errorf("%v: theirs %v, ours %v; want %v and %v", req, a.OverallCode, b.OverallCode, theirs, ours)
	}
}

// wantMetadata compares the metadata in the answers to a request.
func (v versus) wantMetadata(req *ratelimitv3.RateLimitRequest, theirs, ours string) {
	v.Helper()
	a, b := v.answers(req)
	if a, b := metadataOf(v.T, a), metadataOf(v.T, b); a != theirs || b != ours {
		v.Errorf("%v: metadata: theirs %s, ours %s; want %s and %s", req, a, b, theirs, ours)
	}
}

// metadataOf returns the metadata of an answer as JSON without spaces.
func metadataOf(t *testing.T, resp *ratelimitv3.RateLimitResponse) string {
	t.Helper()
	return compactJSON(t, resp.GetDynamicMetadata().GetFields()["metadata"])
}

// differences are the documented differences between the original and package dropin in decisions, and one agreement
// that random configurations do not have.
var differences = []struct {
	name   string
	newest bool // the released original has no metadata
	run    func(versus)
}{
	{"joined keys share a counter", false, func(v versus) {
		v.load("- {key: a_b, rate_limit: {unit: hour, requests_per_unit: 1}}\n- {key: a, rate_limit: {unit: hour, requests_per_unit: 1}}\n")
		v.wantCodes(requestOf(entries("a_b", "c")), allow, allow)
		v.wantCodes(requestOf(entries("a", "b_c")), deny, allow)
	}},
	{"a minute and an hour share a counter", false, func(v versus) {
		v.load("- {key: user, rate_limit: {unit: minute, requests_per_unit: 1}}\n")
		v.wantCodes(requestOf(entries("user", "ann")), allow, allow)
		v.load("- {key: user, rate_limit: {unit: hour, requests_per_unit: 1}}\n")
		v.wantCodes(requestOf(entries("user", "ann")), deny, allow)
	}},
	{"negative hits", false, func(v versus) {
		v.load("- {key: user, rate_limit: {unit: hour, requests_per_unit: 2}}\n")
		back := entries("user", "ann")
		back.HitsAddend, back.IsNegativeHits = wrapperspb.UInt64(2), true
		v.wantCodes(requestOf(entries("user", "ann")), allow, allow)
		v.wantCodes(requestOf(back), deny, allow)
		v.wantCodes(requestOf(entries("user", "ann")), deny, allow)
	}},
	{"a multiple of a unit in a request", false, func(v versus) {
		v.load("- {key: user}\n")
		d := entries("user", "ann")
		d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: 5, Unit: typev3.RateLimitUnit_MINUTE, UnitMultiplier: wrapperspb.UInt32(30),
		}
		theirs, ours := v.answers(requestOf(d))
		if a, b := theirs.Statuses[0].DurationUntilReset.GetSeconds(), ours.Statuses[0].DurationUntilReset.GetSeconds(); a != 60 || b != 1800 {
			v.Errorf("seconds until the reset: theirs %d, ours %d; want 60 and 1800", a, b)
		}
	}},
	{"codes of errors", false, func(v versus) {
		v.load("- {key: user}\n")
		for _, req := range []*ratelimitv3.RateLimitRequest{{Descriptors: requestOf(entries("user", "ann")).Descriptors}, {Domain: "shop"}} {
			_, theirErr := v.o.answer(hour, req)
			_, ourErr := v.m.answer(hour, req)
			if status.Code(theirErr) != codes.Unknown || status.Code(ourErr) != codes.InvalidArgument {
				v.Errorf("%v: theirs %v, ours %v; want the codes UNKNOWN and INVALID_ARGUMENT", req, theirErr, ourErr)
			}
		}
	}},
	{"an answer changes nested metadata", true, func(v versus) {
		v.load("- {key: a, rate_limit: {unit: hour, requests_per_unit: 9}, metadata: {plan: {x: 1}}}\n" +
			"- {key: b, rate_limit: {unit: hour, requests_per_unit: 9}, metadata: {plan: {z: 2}}}\n")
		v.wantMetadata(requestOf(entries("a", "1")), `{"plan":{"x":1}}`, `{"plan":{"x":1}}`)
		v.wantMetadata(requestOf(entries("a", "1"), entries("b", "1")), `{"plan":{"x":1,"z":2}}`, `{"plan":{"x":1,"z":2}}`)
		v.wantMetadata(requestOf(entries("a", "1")), `{"plan":{"x":1,"z":2}}`, `{"plan":{"x":1}}`)
	}},
	{"no difference: keys of metadata in YAML 1.1", true, func(v versus) {
		v.load("- {key: a, rate_limit: {unit: hour, requests_per_unit: 9}, metadata: {y: 1, <<: {on: 2}, z: {y: 3, 0x10: 4, \"off\": 5, <<: {no: 6}}}}\n")
		want := `{"on":2,"y":1,"z":{"16":4,"false":6,"off":5,"true":3}}`
		v.wantMetadata(requestOf(entries("a", "1")), want, want)
	}},
	{"detailed_metric loses metadata", true, func(v versus) {
		v.load("- {key: a, rate_limit: {unit: hour, requests_per_unit: 9}, detailed_metric: true, metadata: {plan: gold}}\n")
		v.wantMetadata(requestOf(entries("a", "1")), `null`, `{"plan":"gold"}`)
	}},
	{"value_to_metric loses metadata", true, func(v versus) {
		v.load("- {key: a, rate_limit: {unit: hour, requests_per_unit: 9}, value_to_metric: true, metadata: {plan: gold}}\n")
		v.wantMetadata(requestOf(entries("a", "1")), `null`, `{"plan":"gold"}`)
	}},
}

// TestDifferences shows each documented difference in the original and in mete.
func TestDifferences(t *testing.T) {
	program := buildOriginal(t, ".")
	var settings []string
	if newestOriginal() {
		settings = append(settings, "RESPONSE_DYNAMIC_METADATA=true")
	}
	o := startOriginal(t, program, settings...)
	for _, d := range differences {
		if d.newest && !newestOriginal() {
			t.Logf("%s: the released original has no metadata: set %s", d.name, sourceVar)
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			if err := o.clear(); err != nil {
				t.Fatal(err)
			}
			d.run(versus{t, o, newOurs(t, dropin.Options{DynamicMetadata: newestOriginal()})})
		})
	}
}

// TestUnknownUnit ends the process of the original by one request. Mete answers it with an error, and goes on.
func TestUnknownUnit(t *testing.T) {
	d := entries("user", "ann")
	d.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 5}
	req := requestOf(d)

	original := startService(t, buildOriginal(t, "github.com/envoyproxy/ratelimit/src/service_cmd"))
	if _, err := original.client(t).ShouldRateLimit(t.Context(), req); status.Code(err) != codes.Unavailable {
		t.Errorf("theirs: %v, want a lost connection", err)
	}
	select {
	case <-original.process.Done():
	case <-time.After(time.Minute):
		t.Error("the original goes on")
	}

	mete := startService(t, ourProgram(t))
	if _, err := mete.client(t).ShouldRateLimit(t.Context(), req); status.Code(err) != codes.InvalidArgument {
		t.Errorf("ours: %v, want the code INVALID_ARGUMENT", err)
	}
	if resp, err := mete.client(t).ShouldRateLimit(t.Context(), requestOf(entries("user", "ann"))); err != nil || resp.OverallCode != allow {
		t.Errorf("ours, the next request: %v, %v", resp, err)
	}
}
