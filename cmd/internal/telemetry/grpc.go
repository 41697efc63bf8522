// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// TraceCall is an interceptor for unary gRPC calls. It traces the calls of sampled parent spans, and a share of the
// calls without a parent. Spans contain the method and the status code, and nothing of the request.
func (t *Telemetry) TraceCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if t == nil {
		return handler(ctx, request)
	}
	if headers, ok := metadata.FromIncomingContext(ctx); ok && len(headers["traceparent"]) > 0 {
		ctx = propagation.TraceContext{}.Extract(ctx, metadataCarrier(headers))
	}
	if parent := trace.SpanContextFromContext(ctx); parent.IsValid() {
		if !parent.IsSampled() {
			return handler(ctx, request)
		}
	} else if rand.Float64() >= t.sample {
		return handler(ctx, request)
	}
	ctx, span := t.tracer.Start(ctx, info.FullMethod, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	reply, err := handler(ctx, request)
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(status.Code(err))))
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return reply, err
}

// A metadataCarrier reads trace headers from gRPC metadata.
type metadataCarrier metadata.MD

func (c metadataCarrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c metadataCarrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

func (c metadataCarrier) Keys() (keys []string) {
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
