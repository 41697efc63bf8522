// SPDX-License-Identifier: Apache-2.0

package grpcserver_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete/cmd/internal/connections"
	"github.com/metehq/mete/cmd/internal/grpcserver"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
)

// The test service has one method. A request with the text hold waits for its release, and panic panics.
const (
	testService = "mete.test.Echo"
	echoMethod  = "/" + testService + "/Echo"
)

// A running is a server with the test service.
type running struct {
	*grpcserver.Server
	t       *testing.T
	bound   *connections.Listener
	address string
	log     *testkit.Log
	arrived chan struct{} // a value for each held request
	release chan struct{} // closed to answer them
	served  chan error
}

func start(t *testing.T, c grpcserver.Config, most int) *running {
	t.Helper()
	r := &running{t: t, log: new(testkit.Log), arrived: make(chan struct{}, 10), release: make(chan struct{}), served: make(chan error, 1)}
	c.Log = r.log.Logger()
	r.Server = grpcserver.New(c)
	r.RegisterService(&grpc.ServiceDesc{ServiceName: testService, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: r.echo}}}, r)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.bound, r.address = connections.New(l, most), l.Addr().String()
	go func() { r.served <- r.Serve(r.bound) }()
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		r.Shutdown(ended)
	})
	return r
}

func (r *running) echo(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	return intercept(ctx, request, &grpc.UnaryServerInfo{Server: r, FullMethod: echoMethod}, func(ctx context.Context, _ any) (any, error) {
		switch request.GetValue() {
		case "panic":
			panic("for the test")
		case "hold":
			r.arrived <- struct{}{}
			select {
			case <-r.release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return request, nil
	})
}

func (r *running) dial(security credentials.TransportCredentials) *grpc.ClientConn {
	r.t.Helper()
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(security))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

func (r *running) plain() *grpc.ClientConn { return r.dial(insecure.NewCredentials()) }

func call(ctx context.Context, conn *grpc.ClientConn, text string) error {
	return conn.Invoke(ctx, echoMethod, wrapperspb.String(text), new(wrapperspb.StringValue))
}

// hold begins a call that waits for its release.
func (r *running) hold(conn *grpc.ClientConn) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call(context.Background(), conn, "hold") }()
	<-r.arrived
	return result
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestServer_Health(t *testing.T) {
	t.Parallel()
	var sick atomic.Bool
	r := start(t, grpcserver.Config{HealthNames: []string{"other"}, Health: func(context.Context) error {
		if sick.Load() {
			return errors.New("the store does not answer")
		}
		return nil
	}}, 10)
	client := grpc_health_v1.NewHealthClient(r.plain())
	for _, name := range []string{"", "other", testService} {
		answer, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", name, answer, err)
		}
	}
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "nothing"})
	wantCode(t, "health of an unknown service", err, codes.NotFound)
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING} {
		if answer, err := watch.Recv(); err != nil || answer.GetStatus() != want {
			t.Errorf("watch: %v, %v; want %v", answer, err, want)
		}
		sick.Store(true)
	}
	list, err := client.List(t.Context(), &grpc_health_v1.HealthListRequest{})
	if err != nil || list.GetStatuses()[testService].GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("list: %v, %v", list, err)
	}
}

// Calls above the bound fail. Health checks do not count.
func TestServer_InFlight(t *testing.T) {
	t.Parallel()
	r := start(t, grpcserver.Config{MaxInFlight: 2}, 10)
	conn := r.plain()
	first, second := r.hold(conn), r.hold(conn)
	wantCode(t, "a third call", call(t.Context(), conn, "x"), codes.Unavailable)
	_, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	wantCode(t, "a health check", err, codes.OK)
	if r.CountInFlight() != 2 || r.CountRefused() != 1 {
		t.Errorf("%d calls in flight, %d refused; want 2 and 1", r.CountInFlight(), r.CountRefused())
	}
	close(r.release)
	wantCode(t, "the first call", <-first, codes.OK)
	wantCode(t, "the second call", <-second, codes.OK)
	testkit.Until(t, "no calls in flight", func() bool { return r.CountInFlight() == 0 })
	wantCode(t, "a call after them", call(t.Context(), conn, "x"), codes.OK)
}

// A panic ends one call. The client does not see its text.
func TestServer_Panic(t *testing.T) {
	t.Parallel()
	r := start(t, grpcserver.Config{}, 10)
	conn := r.plain()
	err := call(t.Context(), conn, "panic")
	wantCode(t, "a panic", err, codes.Internal)
	if strings.Contains(err.Error(), "for the test") || r.log.Count("panic in a gRPC call") != 1 || r.log.Count("for the test") == 0 {
		t.Errorf("error %v, log:\n%s", err, r.log)
	}
	wantCode(t, "a call after it", call(t.Context(), conn, "x"), codes.OK)
	if n := r.CountInFlight(); n != 0 {
		t.Errorf("%d calls in flight after a panic, want 0", n)
	}
}

// Messages and metadata have bounds.
func TestServer_Sizes(t *testing.T) {
	t.Parallel()
	r := start(t, grpcserver.Config{MaxMessageBytes: 1 << 10, MaxHeaderBytes: 4 << 10}, 10)
	conn := r.plain()
	wantCode(t, "a small message", call(t.Context(), conn, strings.Repeat("x", 1000)), codes.OK)
	wantCode(t, "a large message", call(t.Context(), conn, strings.Repeat("x", 1100)), codes.ResourceExhausted)
	large := metadata.AppendToOutgoingContext(t.Context(), "name", strings.Repeat("x", 8<<10))
	if err := call(large, conn, "x"); err == nil {
		t.Error("a call with large metadata has no error")
	}
	wantCode(t, "a call after them", call(t.Context(), conn, "x"), codes.OK)
}

// Authorize guards every service but health checks, also streams.
func TestServer_Authorize(t *testing.T) {
	t.Parallel()
	refusal := status.Error(codes.Unauthenticated, "no token")
	r := start(t, grpcserver.Config{Authorize: func(ctx context.Context) (context.Context, error) {
		if md, _ := metadata.FromIncomingContext(ctx); !slices.Equal(md["token"], []string{"t"}) {
			return nil, refusal
		}
		return ctx, nil
	}}, 10)
	conn := r.plain()
	known := metadata.AppendToOutgoingContext(t.Context(), "token", "t")
	wantCode(t, "a call without a token", call(t.Context(), conn, "x"), codes.Unauthenticated)
	wantCode(t, "a call with a token", call(known, conn, "x"), codes.OK)
	_, err := listServices(t.Context(), conn)
	wantCode(t, "reflection without a token", err, codes.Unauthenticated)
	names, err := listServices(known, conn)
	if err != nil || !slices.Contains(names, testService) || !slices.Contains(names, "grpc.health.v1.Health") {
		t.Errorf("reflection: %v, %v", names, err)
	}
	_, err = grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	wantCode(t, "a health check without a token", err, codes.OK)
}

func listServices(ctx context.Context, conn *grpc.ClientConn) (names []string, err error) {
	stream, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	answer, err := stream.Recv()
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	return names, err
}

// A connection without calls gives way to a new one. A connection with a call does not.
func TestServer_Connections(t *testing.T) {
	t.Parallel()
	r := start(t, grpcserver.Config{}, 1)
	idle, busy, next := r.plain(), r.plain(), r.plain()
	wantCode(t, "the first connection", call(t.Context(), idle, "x"), codes.OK)
	held := r.hold(busy)
	testkit.Until(t, "all connections are in use", func() bool { return r.bound.CountFull() > 0 && r.bound.CountOpen() == 1 })
	waiting := make(chan error, 1)
	go func() { waiting <- call(context.Background(), next, "x") }()
	close(r.release)
	wantCode(t, "the call of the busy connection", <-held, codes.OK)
	wantCode(t, "the waiting connection", <-waiting, codes.OK)
}

// Shutdown waits for calls in flight, and rejects new connections.
func TestServer_Shutdown(t *testing.T) {
	t.Parallel()
	r := start(t, grpcserver.Config{}, 10)
	held := r.hold(r.plain())
	ended := make(chan error, 1)
	go func() { ended <- r.Shutdown(context.Background()) }()
	testkit.Until(t, "the address closes", func() bool {
		conn, err := net.Dial("tcp", r.address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	close(r.release)
	wantCode(t, "a call in flight", <-held, codes.OK)
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-r.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// When its context ends, Shutdown ends the calls in flight.
func TestServer_ShutdownExpires(t *testing.T) {
	t.Parallel()
	r := start(t, grpcserver.Config{}, 10)
	held := r.hold(r.plain())
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Shutdown(expired); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v, want %v", err, context.Canceled)
	}
	wantCode(t, "a call in flight", <-held, codes.Unavailable)
}

// A TLS server requires ALPN, and does not serve plain text.
func TestServer_TLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	client := proctest.Certify(t, cert, key)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, grpcserver.Config{TLS: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}}, 10)
	wantCode(t, "a call by TLS", call(t.Context(), r.dial(credentials.NewTLS(client)), "x"), codes.OK)
	wantCode(t, "a call in plain text", call(t.Context(), r.plain(), "x"), codes.Unavailable)
	without := client.Clone()
	without.NextProtos = nil
	conn, err := tls.Dial("tcp", r.address, without)
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a client without ALPN gets an answer")
	}
}
