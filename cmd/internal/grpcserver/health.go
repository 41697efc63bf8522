// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// watchInterval is the polling interval of health watches.
const watchInterval = time.Second

// A health is the health service. All services of the server have one status. The empty name is the server itself.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	server *Server
}

// Check implements the health service.
func (h *health) Check(ctx context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if !h.knows(r.GetService()) {
		return nil, status.Errorf(codes.NotFound, "unknown service %q", r.GetService())
	}
	return &grpc_health_v1.HealthCheckResponse{Status: h.status(ctx)}, nil
}

// List implements the health service.
func (h *health) List(ctx context.Context, _ *grpc_health_v1.HealthListRequest) (*grpc_health_v1.HealthListResponse, error) {
	now := h.status(ctx)
	list := map[string]*grpc_health_v1.HealthCheckResponse{"": {Status: now}}
	for name := range h.server.server.GetServiceInfo() {
		list[name] = &grpc_health_v1.HealthCheckResponse{Status: now}
	}
	return &grpc_health_v1.HealthListResponse{Statuses: list}, nil
}

// Watch implements the health service. It sends the status, and then each change.
func (h *health) Watch(r *grpc_health_v1.HealthCheckRequest, stream grpc_health_v1.Health_WatchServer) error {
	ctx := stream.Context()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	last := grpc_health_v1.HealthCheckResponse_ServingStatus(-1)
	for {
		now := grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
		if h.knows(r.GetService()) {
			now = h.status(ctx)
		}
		if now != last {
			if err := stream.Send(&grpc_health_v1.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-ticker.C:
		}
	}
}

func (h *health) knows(service string) bool {
	if service == "" || slices.Contains(h.server.config.HealthNames, service) {
		return true
	}
	_, ok := h.server.server.GetServiceInfo()[service]
	return ok
}

func (h *health) status(ctx context.Context) grpc_health_v1.HealthCheckResponse_ServingStatus {
	select {
	case <-h.server.stopping:
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	default:
	}
	if check := h.server.config.Health; check != nil && check(ctx) != nil {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_SERVING
}
