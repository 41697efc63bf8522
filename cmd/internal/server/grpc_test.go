// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/proctest"
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

// checkHealth returns the error of a health check.
func checkHealth(t *testing.T, conn *grpc.ClientConn) error {
	_, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	return err
}

// Reflection lists the services.
func TestGRPC_Reflection(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.GRPCListen = "127.0.0.1:0"
	s := start(t, c)
	stream, err := grpc_reflection_v1.NewServerReflectionClient(dialGRPC(t, s.server.GRPCAddr(), nil)).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, one := range answer.GetListServicesResponse().GetService() {
		names[one.GetName()] = true
	}
	for _, want := range []string{"envoy.service.ratelimit.v3.RateLimitService", "envoy.service.auth.v3.Authorization", "grpc.health.v1.Health"} {
		if !names[want] {
			t.Errorf("reflection lists %v, without %s", names, want)
		}
	}
}

// Beyond grpc_max_connections, a new connection waits while all others have calls.
func TestGRPC_Connections(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.GRPCListen, c.GRPCMaxConnections = "127.0.0.1:0", 1
	s := start(t, c)
	busy, next := dialGRPC(t, s.server.GRPCAddr(), nil), dialGRPC(t, s.server.GRPCAddr(), nil)
	watch, err := grpc_health_v1.NewHealthClient(busy).Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- checkHealth(t, next) }()
	testkit.Until(t, "all connections are in use", func() bool {
		_, text := get(t, s.admin+"/metrics")
		return strings.Contains(text, `mete_http_connections{listener="grpc"} 1`) && !strings.Contains(text, `mete_http_connections_full_total{listener="grpc"} 0`)
	})
	busy.Close()
	if err := <-waiting; err != nil {
		t.Errorf("the connection that waited: %v", err)
	}
}

// A shutdown waits for the decisions in flight of all protocols.
func TestProtocols_Drain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ask  func(p *protocols) story
		at   func(p *protocols) net.Addr
	}{
		{"rate limit service", func(p *protocols) story { return p.askRateLimit("", "a", 1) }, func(p *protocols) net.Addr { return p.server.GRPCAddr() }},
		{"external authorization", func(p *protocols) story { return p.askAuthorization("", "a", 1) }, func(p *protocols) net.Addr { return p.server.GRPCAddr() }},
		{"METE.TAKE", func(p *protocols) story { return p.askRESP(byHeader, "a", 1) }, func(p *protocols) net.Addr { return p.server.RESPAddr() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			redis := proctest.StartRedis(t)
			c := testConfig()
			c.Policy = policyFile(t, protocolPolicy("enforce", "open", "")) // a slow machine may exceed the timeout of the store
			c.Store, c.HashKey = storeurl.MustParse("redis://"+redis.Addr+"?timeout=10s"), "a key of this test"
			c.Timeouts.Drain = patience
			p := openProtocols(t, c)
			redis.Pause()
			told := make(chan story, 1)
			go func() {
				defer close(told)
				told <- tt.ask(p)
			}()
			testkit.Until(t, "the store has the call", func() bool {
				_, text := get(t, p.admin+"/metrics")
				return strings.Contains(text, `mete_store_in_flight{store="redis"} 1`)
			})
			p.stop()
			testkit.Until(t, "the address closes", func() bool {
				conn, err := net.Dial("tcp", tt.at(p).String())
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
			redis.Resume()
			if got := <-told; !got.allowed {
				t.Errorf("the decision in flight: %+v, want it allowed", got)
			}
			if err := p.wait(); err != nil {
				t.Errorf("Run: %v", err)
			}
			if p.log.Count("aborted at shutdown") != 0 {
				t.Error("the shutdown aborted a request")
			}
		})
	}
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

// Negative hits refund tokens, so they need the role that refunds over HTTP. Without a token there is no role.
func TestGRPC_RefundRole(t *testing.T) {
	t.Parallel()
	c := testConfig()
	const reader, operator = "reader-0123456789abcdef", "operator-0123456789abcdef"
	c.AdminTokens = []config.AdminToken{{Name: "r", Role: httpapi.RoleRead, Token: reader}, {Name: "o", Role: httpapi.RoleOperate, Token: operator}}
	c.GRPCListen = "127.0.0.1:0"
	s := start(t, c)
	rates := ratelimitv3.NewRateLimitServiceClient(dialGRPC(t, s.server.GRPCAddr(), nil))
	request := &ratelimitv3.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitcommon.RateLimitDescriptor{{
		Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{{Key: "k", Value: "v"}}, IsNegativeHits: true}}}
	for sent, want := range map[string]codes.Code{
		"": codes.PermissionDenied, "Bearer wrong": codes.Unauthenticated, "Bearer " + reader: codes.PermissionDenied, "Bearer " + operator: codes.OK,
	} {
		ctx := t.Context()
		if sent != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", sent)
		}
		if _, err := rates.ShouldRateLimit(ctx, request); status.Code(err) != want {
			t.Errorf("authorization %q: %v, want %v", sent, err, want)
		}
	}
}

// The server reads a message before it can check the token, so large messages get no memory.
func TestGRPC_LargeMessage(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.GRPCListen = "127.0.0.1:0"
	s := start(t, c)
	rates := ratelimitv3.NewRateLimitServiceClient(dialGRPC(t, s.server.GRPCAddr(), nil))
	_, err := rates.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: strings.Repeat("d", 1<<18)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message above 256 KiB: %v, want RESOURCE_EXHAUSTED", err)
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
