// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/test/bufconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

const (
	unaryCall      = "/grpc.testing.TestService/UnaryCall"
	emptyCall      = "/grpc.testing.TestService/EmptyCall"
	fullDuplexCall = "/grpc.testing.TestService/FullDuplexCall"
)

// A service echoes. A field of the request selects its response.
type service struct {
	pb.UnimplementedTestServiceServer
	unary func(context.Context) error // called by UnaryCall, if set
}

func (s *service) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s.unary != nil {
		if err := s.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.SimpleResponse{Payload: r.Payload}, nil
}

func (s *service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func (s *service) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, out pb.TestService_StreamingOutputCallServer) error {
	for range 3 {
		if err := out.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) StreamingInputCall(in pb.TestService_StreamingInputCallServer) error {
	n := int32(0)
	for {
		switch _, err := in.Recv(); err {
		case nil:
			n++
		case io.EOF:
			return in.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: n})
		default:
			return err
		}
	}
}

func (s *service) FullDuplexCall(both pb.TestService_FullDuplexCallServer) error {
	for {
		switch _, err := both.Recv(); err {
		case nil:
			if err := both.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// now is the clock of the store: the bubble's, where there is one.
func now() bucket.Instant { return bucket.At(time.Now()) }

func newLimiter(t testing.TB, store mete.Store, rules string) *mete.Limiter {
	t.Helper()
	var m *policy.Matcher
	if rules != "" {
		var err error
		if m, err = policy.Load([]byte(rules), policy.Options{}); err != nil {
			t.Fatalf("policy.Load: %v", err)
		}
	}
	lim, err := mete.New(store, m, mete.Config{Local: storetest.NewModel(now)})
	if err != nil {
		t.Fatalf("mete.New: %v", err)
	}
	return lim
}

func newInterceptor(t testing.TB, lim *mete.Limiter, config grpclimit.Config) *grpclimit.Interceptor {
	t.Helper()
	in, err := grpclimit.New(lim, config)
	if err != nil {
		t.Fatalf("grpclimit.New(%+v): %v", config, err)
	}
	return in
}

func newClient(t testing.TB, lim *mete.Limiter, config grpclimit.ClientConfig) *grpclimit.ClientInterceptor {
	t.Helper()
	c, err := grpclimit.NewClient(lim, config)
	if err != nil {
		t.Fatalf("grpclimit.NewClient(%+v): %v", config, err)
	}
	return c
}

// limited starts a server of s whose calls a limiter of these rules decides, and
// returns a client of it.
func limited(t testing.TB, rules string, config grpclimit.Config) pb.TestServiceClient {
	t.Helper()
	return serve(t, &service{}, newInterceptor(t, newLimiter(t, storetest.NewModel(now), rules), config))
}

// serve starts a server behind in, if that is not nil, and returns a client. Both
// end with the test, or with the bubble that they are in.
func serve(t testing.TB, s pb.TestServiceServer, in *grpclimit.Interceptor, opts ...grpc.DialOption) pb.TestServiceClient {
	t.Helper()
	var server *grpc.Server
	if in == nil {
		server = grpc.NewServer()
	} else {
		server = grpc.NewServer(grpc.ChainUnaryInterceptor(in.Unary()), grpc.ChainStreamInterceptor(in.Stream()))
	}
	pb.RegisterTestServiceServer(server, s)
	listener := bufconn.Listen(1 << 20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	cc, err := grpc.NewClient("passthrough:///Test.Example.:443", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cc.Close()
		server.Stop()
		<-done
	})
	return pb.NewTestServiceClient(cc)
}
