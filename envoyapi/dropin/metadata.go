// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// describe returns the dynamic metadata of an answer: the request, and the metadata of the limits that it passed. The
// first limit of several with the same field decides, and structs are merged.
func (c *call) describe(req *ratelimitv3.RateLimitRequest, statuses []*descriptorStatus) *structpb.Struct {
	descriptors := &structpb.ListValue{}
	for _, d := range req.GetDescriptors() {
		descriptors.Values = append(descriptors.Values, structpb.NewStructValue(describeDescriptor(d)))
	}
	fields := map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(req.GetDomain()),
		"descriptors": structpb.NewListValue(descriptors),
	}
	if n := req.GetHitsAddend(); n != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(n))
	}
	passed := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range c.hits {
		r := c.hits[i].rule
		if r != nil && !r.unlimited && statuses[i].GetCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
			mergeStruct(passed, r.metadata)
		}
	}
	if len(passed.Fields) > 0 {
		fields["metadata"] = structpb.NewStructValue(passed)
	}
	return &structpb.Struct{Fields: fields}
}

func describeDescriptor(d *commonv3.RateLimitDescriptor) *structpb.Struct {
	entries := &structpb.ListValue{}
	for _, e := range d.GetEntries() {
		entries.Values = append(entries.Values, structpb.NewStringValue(e.GetKey()+"="+e.GetValue()))
	}
	fields := map[string]*structpb.Value{"entries": structpb.NewListValue(entries)}
	if d.GetLimit() != nil {
		fields["limit"] = structpb.NewStringValue(d.GetLimit().String())
	}
	if d.GetHitsAddend() != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(d.GetHitsAddend().GetValue()))
	}
	return &structpb.Struct{Fields: fields}
}

// mergeStruct adds copies of the fields of src that dst lacks.
func mergeStruct(dst, src *structpb.Struct) {
	if dst.Fields == nil {
		dst.Fields = map[string]*structpb.Value{}
	}
	for key, v := range src.GetFields() {
		have, ok := dst.Fields[key]
		switch {
		case !ok:
			dst.Fields[key] = proto.CloneOf(v)
		case have.GetStructValue() != nil && v.GetStructValue() != nil:
			mergeStruct(have.GetStructValue(), v.GetStructValue())
		}
	}
}
