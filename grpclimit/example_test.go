// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/memstore"
)

// exampleLimiter decides by the limits that calls bring, without a policy.
func exampleLimiter() *mete.Limiter {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return limiter
}

// exampleDial starts a server behind limited and connects to it.
func exampleDial(limited *grpclimit.Interceptor, opts ...grpc.DialOption) (client pb.TestServiceClient, stop func()) {
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limited.Unary()),
		grpc.ChainStreamInterceptor(limited.Stream()),
	)
	pb.RegisterTestServiceServer(server, &service{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(listener)
	cc, err := grpc.NewClient(listener.Addr().String(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Fatal(err)
	}
	return pb.NewTestServiceClient(cc), func() { cc.Close(); server.Stop() }
}

// Each address may call one method twice, and from then on once a minute.
func ExampleNew() {
	limited, err := grpclimit.New(exampleLimiter(), grpclimit.Config{
		Methods: []grpclimit.MethodLimit{{
			Name:    "per-address",
			Methods: []string{"/grpc.testing.TestService/UnaryCall"},
			Key:     grpclimit.By("ip:address"),
			Rate:    "1/1m",
			Burst:   2,
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := exampleDial(limited)
	defer stop()
	for range 3 {
		_, err := client.UnaryCall(context.Background(), &pb.SimpleRequest{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
}

// Denied replaces the status of denied calls, and Exempt exempts calls.
func ExampleConfig() {
	limited, err := grpclimit.New(exampleLimiter(), grpclimit.Config{
		Methods: []grpclimit.MethodLimit{{Name: "all", Methods: []string{"*"}, Key: grpclimit.Everyone(), Rate: "1/1h", Burst: 1}},
		Exempt:  func(_ context.Context, method string) bool { return method == "/grpc.testing.TestService/EmptyCall" },
		Denied: func(_ context.Context, method string, d mete.Decision) error {
			return status.Errorf(codes.Unavailable, "limit %s is exceeded", d.Rule)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := exampleDial(limited)
	defer stop()
	for range 2 {
		_, err := client.UnaryCall(context.Background(), &pb.SimpleRequest{})
		fmt.Printf("%v %q\n", status.Code(err), status.Convert(err).Message())
	}
	_, err = client.EmptyCall(context.Background(), &pb.Empty{})
	fmt.Println(status.Code(err))
	// Output:
	// OK ""
	// Unavailable "limit all is exceeded"
	// OK
}

// A client that is told to wait waits, and its caller sees no error.
func ExampleNewClient() {
	limited, err := grpclimit.New(exampleLimiter(), grpclimit.Config{
		Methods: []grpclimit.MethodLimit{{Name: "all", Methods: []string{"*"}, Key: grpclimit.Everyone(), Rate: "1/100ms", Burst: 1}},
	})
	if err != nil {
		log.Fatal(err)
	}
	patient, err := grpclimit.NewClient(nil, grpclimit.ClientConfig{})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := exampleDial(limited, grpc.WithChainUnaryInterceptor(patient.Unary()))
	defer stop()
	for range 2 {
		_, err := client.UnaryCall(context.Background(), &pb.SimpleRequest{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
}
