// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A rig is a rate limit service on a loopback connection, with a clock that stands still.
type rig struct {
	testing.TB
	ratelimitv3.RateLimitServiceClient
	limiter *mete.Limiter
	clock   *storetest.Clock
	store   *memstore.Store
	down    *atomic.Bool
}

// A wire fails while it is down.
type wire struct {
	mete.Store
	down atomic.Bool
}

func (w *wire) Unwrap() mete.Store { return w.Store }

func (w *wire) failure() error {
	if w.down.Load() {
		return &mete.StoreError{Op: "take", Store: "wire", Spent: mete.NotSpent, Err: fmt.Errorf("%w: no route", store.ErrUnavailable)}
	}
	return nil
}

func (w *wire) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if err := w.failure(); err != nil {
		return dst, false, err
	}
	return w.Store.Take(ctx, dst, charges, mode)
}

func (w *wire) Refund(ctx context.Context, refunds []mete.Refund, id string) error {
	return errors.Join(w.failure(), w.Store.Refund(ctx, refunds, id))
}

func newLimiter(tb testing.TB, text string) (*mete.Limiter, *storetest.Clock, *memstore.Store, *wire) {
	tb.Helper()
	clock := storetest.NewClock()
	memory, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	local, err := memstore.New(memstore.Config{Now: clock.Now})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := policy.Load([]byte(text), policy.Options{HashKey: []byte("0123456789abcdef")})
	if err != nil {
		tb.Fatal(err)
	}
	w := &wire{Store: memory}
	lim, err := mete.New(w, m, mete.Config{Local: local})
	if err != nil {
		tb.Fatal(err)
	}
	return lim, clock, memory, w
}

func newRig(tb testing.TB, text string) rig {
	tb.Helper()
	lim, clock, memory, w := newLimiter(tb, text)
	service, err := envoyapi.NewRateLimit(lim, envoyapi.RateLimitConfig{DisableJitter: true})
	if err != nil {
		tb.Fatal(err)
	}
	return rig{tb, serve(tb, service), lim, clock, memory, &w.down}
}

// serve returns a client of a service on a loopback address.
func serve(tb testing.TB, service ratelimitv3.RateLimitServiceServer) ratelimitv3.RateLimitServiceClient {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, service)
	go server.Serve(listener)
	tb.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return ratelimitv3.NewRateLimitServiceClient(conn)
}

// describe returns a descriptor with entries of these keys and values.
func describe(pairs ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func withHits(d *commonv3.RateLimitDescriptor, hits uint64) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(hits)
	return d
}

func request(descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: descriptors}
}

func (r rig) ask(req *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitResponse {
	r.Helper()
	got, err := r.ShouldRateLimit(context.Background(), req)
	if err != nil {
		r.Fatal(err)
	}
	return got
}

func header(res *ratelimitv3.RateLimitResponse, name string) string {
	for _, h := range res.GetResponseHeadersToAdd() {
		if h.GetKey() == name {
			return h.GetValue()
		}
	}
	return ""
}
