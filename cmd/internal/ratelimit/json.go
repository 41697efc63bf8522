// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"io"
	"net/http"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/metehq/mete/cmd/internal/grpcserver"
)

// A jsonHandler answers calls in the JSON form of Protocol Buffers.
type jsonHandler struct {
	service ratelimitv3.RateLimitServiceServer
}

// ServeHTTP answers with status 200, or 429 for OVER_LIMIT. An invalid call has status 400, and a call without a
// decision status 503.
func (h *jsonHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, grpcserver.DefaultMaxMessageBytes))
	if err != nil {
		http.Error(w, "cannot read the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	request := new(ratelimitv3.RateLimitRequest)
	if err := protojson.Unmarshal(body, request); err != nil {
		http.Error(w, "the body must be a RateLimitRequest in JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	response, err := h.service.ShouldRateLimit(r.Context(), request)
	if err != nil {
		http.Error(w, status.Convert(err).Message(), statusOf(err))
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch response.GetOverallCode() {
	case ratelimitv3.RateLimitResponse_OVER_LIMIT:
		w.WriteHeader(http.StatusTooManyRequests)
	case ratelimitv3.RateLimitResponse_UNKNOWN:
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write(text)
}

// statusOf returns the status of a call without an answer. The original always returns 400.
func statusOf(err error) int {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Internal, codes.Canceled:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
