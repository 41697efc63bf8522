// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitcommon "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/rueidis"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

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

// A story is the report of a protocol about a decision.
type story struct {
	allowed      bool
	rule, reason string
}

// The requests of all protocols go to one server.
type doors struct {
	*running
	rates ratelimitv3.RateLimitServiceClient
	redis rueidis.Client
}

func openDoors(t *testing.T, c config.Config) *doors {
	t.Helper()
	c.GRPCListen, c.RESPListen = "127.0.0.1:0", "127.0.0.1:0"
	d := &doors{running: start(t, c)}
	d.rates = ratelimitv3.NewRateLimitServiceClient(dialGRPC(t, d.server.GRPCAddr(), nil))
	var err error
	d.redis, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{d.server.RESPAddr().String()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.redis.Close)
	return d
}

func (d *doors) askHTTP(who string, cost uint64) (s story) {
	d.t.Helper()
	_, body := post(d.t, d.main+"/v1/take", strings.NewReader(fmt.Sprintf(`{"attributes":{"envoy:domain":"d","descriptor:who":%q},"cost":%d}`, who, cost)))
	var answer struct {
		Allowed      bool
		Rule, Reason string
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		d.t.Fatal(err)
	}
	return story{answer.Allowed, answer.Rule, answer.Reason}
}

func (d *doors) askRateLimit(who string, cost uint64) (s story) {
	d.t.Helper()
	answer, err := d.rates.ShouldRateLimit(d.t.Context(), &ratelimitv3.RateLimitRequest{Domain: "d", Descriptors: []*ratelimitcommon.RateLimitDescriptor{{
		Entries: []*ratelimitcommon.RateLimitDescriptor_Entry{{Key: "who", Value: who}}, HitsAddend: wrapperspb.UInt64(cost),
	}}})
	if err != nil {
		d.t.Fatal(err)
	}
	fields := answer.GetDynamicMetadata().GetFields()
	return story{answer.GetOverallCode() == ratelimitv3.RateLimitResponse_OK, fields["rule"].GetStringValue(), fields["reason"].GetStringValue()}
}

func (d *doors) askRESP(who string, cost uint64) (s story) {
	d.t.Helper()
	command := d.redis.B().Arbitrary("METE.TAKE", "COST", fmt.Sprint(cost), "envoy:domain", "d", "descriptor:who", who).Build()
	list, err := d.redis.Do(d.t.Context(), command).ToArray()
	if err != nil || len(list) < 7 {
		d.t.Fatalf("METE.TAKE: %v, %v", list, err)
	}
	limited, _ := list[0].AsInt64()
	s.rule, _ = list[5].ToString()
	s.reason, _ = list[6].ToString()
	s.allowed = limited == 0
	return s
}

// Every protocol gives the decision that HTTP gives.
func TestDoors_SameStory(t *testing.T) {
	t.Parallel()
	rule := `rules:
  - name: callers
    mode: %s
    limit_keys: ["descriptor:who"]
    algorithm: token_bucket
    algorithm_config: { rate: 1/1d, burst: 2 }
`
	for _, tt := range []struct {
		name, mode string
		costs      []uint64 // of the requests; the stories of the last are compared
	}{
		{"allowed", "enforce", []uint64{1}},
		{"denied", "enforce", []uint64{2, 1}},
		{"never", "enforce", []uint64{3}},
		{"shadow", "shadow", []uint64{2, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testConfig()
			c.Policy = policyFile(t, fmt.Sprintf(rule, tt.mode))
			d := openDoors(t, c)
			var http, rates, resp story
			for _, cost := range tt.costs {
				http, rates, resp = d.askHTTP("http", cost), d.askRateLimit("rates", cost), d.askRESP("resp", cost)
			}
			if rates.allowed != http.allowed || resp != http {
				t.Errorf("HTTP %+v, rate limit service %+v, RESP %+v; want the same", http, rates, resp)
			}
			if !http.allowed && (rates.rule != http.rule || rates.reason != http.reason) {
				t.Errorf("HTTP %+v, rate limit service %+v; want the same", http, rates)
			}
		})
	}
}

// External authorization denies with the status 429.
func TestGRPC_Authorization(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, strings.ReplaceAll(burst("1"), "ip:address", "header:who"))
	d := openDoors(t, c)
	checks := authv3.NewAuthorizationClient(dialGRPC(t, d.server.GRPCAddr(), nil))
	request := &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "192.0.2.1"}}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/", Host: "example.com", Headers: map[string]string{"who": "a"},
		}},
	}}
	for i, want := range []int32{0, 429} {
		answer, err := checks.Check(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if got := int32(answer.GetDeniedResponse().GetStatus().GetCode()); got != want {
			t.Errorf("check %d: denied with %d, want %d", i, got, want)
		}
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
