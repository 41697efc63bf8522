// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/memstore"
)

// A transport receives the trailers of grpc.SetTrailer.
type transport struct{ grpc.ServerTransportStream }

func (transport) SetTrailer(metadata.MD) error { return nil }

func newMemory(b *testing.B) *memstore.Store {
	b.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return store
}

// keyed is a policy by API key.
func keyed(numbers string) string {
	return `{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": ` + numbers + `}`
}

const plenty, nothing = `{"rps": 1000000, "burst": 1000000}`, `{"rate": "1/1d", "burst": 1}`

// BenchmarkUnary measures the overhead of the interceptor with a handler that does nothing.
func BenchmarkUnary(b *testing.B) {
	ctx := metadata.NewIncomingContext(b.Context(), metadata.Pairs("x-api-key", "k-1234567890", ":authority", "api.example:443",
		"content-type", "application/grpc", "user-agent", "grpc-go"))
	ctx = peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}})
	ctx = grpc.NewContextWithServerTransportStream(ctx, transport{})
	info := &grpc.UnaryServerInfo{FullMethod: unaryCall}
	handler := func(context.Context, any) (any, error) { return nil, nil }
	for _, bb := range []struct {
		name, rules string
		config      grpclimit.Config
	}{
		{"allowed", keyed(plenty), grpclimit.Config{}},
		{"allowed without trailers", keyed(plenty), grpclimit.Config{OmitTrailers: true}},
		{"allowed by address", `{"name": "free", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": ` + plenty + `}`, grpclimit.Config{OmitTrailers: true}},
		{"allowed by method", "", grpclimit.Config{OmitTrailers: true, Methods: []grpclimit.MethodLimit{
			{Name: "m", Methods: []string{unaryCall}, Key: grpclimit.By("header:x-api-key"), Bucket: perHour(b, 1<<30)}}}},
		{"denied", keyed(nothing), grpclimit.Config{}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			unary := newInterceptor(b, newLimiter(b, newMemory(b), bb.rules), bb.config).Unary()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = unary(ctx, nil, info, handler)
			}
		})
	}
}

// BenchmarkCall is a whole call to a server in the same process.
func BenchmarkCall(b *testing.B) {
	for _, bb := range []struct {
		name string
		in   *grpclimit.Interceptor
	}{
		{"bare", nil},
		{"allowed", newInterceptor(b, newLimiter(b, newMemory(b), keyed(plenty)), grpclimit.Config{})},
		{"allowed without trailers", newInterceptor(b, newLimiter(b, newMemory(b), keyed(plenty)), grpclimit.Config{OmitTrailers: true})},
		{"denied", newInterceptor(b, newLimiter(b, newMemory(b), keyed(nothing)), grpclimit.Config{})},
	} {
		b.Run(bb.name, func(b *testing.B) {
			client := serve(b, &service{}, bb.in)
			ctx := as(b.Context(), "x-api-key", "k-1234567890")
			b.ReportAllocs()
			for b.Loop() {
				_, _ = client.EmptyCall(ctx, &pb.Empty{})
			}
		})
	}
}
