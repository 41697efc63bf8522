// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"net"
	"testing"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/testkit"
)

// dialGRPC returns a connection that the test closes at its end.
func dialGRPC(t *testing.T, at net.Addr, c *tls.Config) *grpc.ClientConn {
	t.Helper()
	security := insecure.NewCredentials()
	if c != nil {
		security = credentials.NewTLS(c)
	}
	conn, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(security))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// An address that requires tokens rejects callers without one, except health checks.
func TestGRPC_Tokens(t *testing.T) {
	t.Parallel()
	c := testConfig()
	const token = "0123456789abcdef"
	c.AdminTokens = []config.AdminToken{{Name: "envoy", Role: httpapi.RoleRead, Token: token}}
	c.GRPCListen = "0.0.0.0:0"
	s := start(t, c)
	_, port, _ := net.SplitHostPort(s.server.GRPCAddr().String())
	at, err := net.ResolveTCPAddr("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	conn := dialGRPC(t, at, nil)
	rates := ratelimitv3.NewRateLimitServiceClient(conn)
	request := &ratelimitv3.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitcommon.RateLimitDescriptor{{Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}}}}
	for sent, want := range map[string]codes.Code{"": codes.Unauthenticated, "Bearer wrong": codes.Unauthenticated, "Bearer " + token: codes.OK} {
		ctx := t.Context()
		if sent != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", sent)
		}
		if _, err := rates.ShouldRateLimit(ctx, request); status.Code(err) != want {
			t.Errorf("authorization %q: %v, want %v", sent, err, want)
		}
	}
	health, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health without a token: %v, %v", health, err)
	}
}

// With grpc_tls.client_ca, clients need a certificate.
func TestGRPC_ClientCertificates(t *testing.T) {
	t.Parallel()
	c := testConfig()
	var known *tls.Config
	c.GRPCTLS, known = certified(t, t.TempDir())
	c.GRPCTLS.ClientCA = c.GRPCTLS.Cert
	c.GRPCListen = "127.0.0.1:0"
	s := start(t, c)
	nobody := known.Clone()
	nobody.Certificates = nil
	for name, tt := range map[string]struct {
		config *tls.Config
		want   codes.Code
	}{"with a certificate": {known, codes.OK}, "without one": {nobody, codes.Unavailable}} {
		_, err := grpc_health_v1.NewHealthClient(dialGRPC(t, s.server.GRPCAddr(), tt.config)).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if status.Code(err) != tt.want {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// A shutdown ends health watches and silent connections, which would otherwise delay it.
func TestGRPC_Shutdown(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.GRPCListen = "127.0.0.1:0"
	c.Timeouts.ReadHeader, c.Timeouts.Drain = patience, patience
	s := start(t, c)
	silent, err := net.Dial("tcp", s.server.GRPCAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	watch, err := grpc_health_v1.NewHealthClient(dialGRPC(t, s.server.GRPCAddr(), nil)).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatalf("the first status: %v, %v", first, err)
	}
	s.stop()
	testkit.Until(t, "the watch ends", func() bool {
		_, err := watch.Recv()
		return status.Code(err) == codes.Unavailable
	})
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
