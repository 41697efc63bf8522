// SPDX-License-Identifier: Apache-2.0

package dropin

import (
	"math"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

type (
	descriptorStatus = ratelimitv3.RateLimitResponse_DescriptorStatus

	// A statusMemory holds one status, so that a request allocates all its statuses at once.
	statusMemory struct {
		status descriptorStatus
		reset  durationpb.Duration
	}
)

// respond returns the answer to a request. Its code is OVER_LIMIT if a limit without quota_mode is exceeded, or if all
// limits with quota_mode are. The global quota mode makes descriptors without a limit count as limits, as in the
// reference server.
func (c *call) respond(s *Service, req *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitResponse {
	memory := make([]statusMemory, len(c.hits))
	resp := &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK, Statuses: make([]*descriptorStatus, len(c.hits)),
	}
	var tightest *descriptorStatus
	least := uint32(math.MaxUint32)
	over, quotas, quotasOver := false, 0, 0
	for i := range c.hits {
		h, st := &c.hits[i], &memory[i].status
		resp.Statuses[i] = st
		h.writeStatus(st, &memory[i].reset)
		if h.rule != nil && h.rule.unlimited {
			continue
		}
		if st.CurrentLimit != nil && st.LimitRemaining < least {
			tightest, least = st, st.LimitRemaining
		}
		quota := s.options.QuotaMode || h.rule != nil && h.rule.quota
		exceeded := st.Code == ratelimitv3.RateLimitResponse_OVER_LIMIT
		switch {
		case quota && exceeded:
			quotas++
			quotasOver++
		case quota:
			quotas++
		case exceeded:
			over, tightest, least = true, st, 0
		}
	}
	if over || quotas > 0 && quotas == quotasOver {
		if resp.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT; s.options.ShadowMode {
			resp.OverallCode = ratelimitv3.RateLimitResponse_OK
			s.counters.globalShadow.Add(1)
		}
	}
	if names := s.options.Headers; names != nil && tightest != nil {
		resp.ResponseHeadersToAdd = []*corev3.HeaderValue{
			{Key: names.Limit, Value: strconv.FormatUint(uint64(tightest.CurrentLimit.RequestsPerUnit), 10)},
			{Key: names.Remaining, Value: strconv.FormatUint(uint64(tightest.LimitRemaining), 10)},
			{Key: names.Reset, Value: strconv.FormatInt(tightest.DurationUntilReset.GetSeconds(), 10)},
		}
	}
	if s.options.DynamicMetadata {
		resp.DynamicMetadata = c.describe(req, resp.Statuses)
	}
	return resp
}

// writeStatus writes the status of a descriptor. A limit with shadow_mode is never over.
func (h *hit) writeStatus(st *descriptorStatus, reset *durationpb.Duration) {
	st.Code = ratelimitv3.RateLimitResponse_OK
	switch {
	case h.rule == nil:
	case h.rule.unlimited:
		st.LimitRemaining = math.MaxUint32
	default:
		reset.Seconds = h.reset
		st.CurrentLimit, st.LimitRemaining, st.DurationUntilReset = h.rule.limit, h.remaining, reset
		if h.over {
			st.LimitRemaining = 0
			if !h.rule.shadow {
				st.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
			}
		}
	}
}
