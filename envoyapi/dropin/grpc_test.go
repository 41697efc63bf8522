// SPDX-License-Identifier: Apache-2.0

package dropin_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/envoyapi/dropin"
)

// Concurrent clients get exactly the limit while the configuration changes, and a value of 1 MiB is an ordinary value.
func TestService_OverGRPC(t *testing.T) {
	const limit, clients, calls = 100, 8, 50
	yaml := "domain: shop\ndescriptors: [{key: k, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 100}}]"
	r := newRig(t, yaml, dropin.Options{DynamicMetadata: true})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, r.Service)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := ratelimitv3.NewRateLimitServiceClient(conn)
	ask := func(d *commonv3.RateLimitDescriptor) (*ratelimitv3.RateLimitResponse, error) {
		return client.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "shop", Descriptors: []*commonv3.RateLimitDescriptor{d}})
	}

	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range calls {
				resp, err := ask(entries("k=v"))
				switch {
				case err != nil:
					t.Error(err)
				case resp.OverallCode == ok:
					allowed.Add(1)
				}
			}
			r.SetConfig(parse(t, yaml))
		})
	}
	wg.Wait()
	if got := allowed.Load(); got != limit {
		t.Errorf("%d requests allowed, want %d", got, limit)
	}
	resp, err := ask(entries("k=" + strings.Repeat("v", 1<<20)))
	if err != nil || resp.Statuses[0].LimitRemaining != limit-1 {
		t.Errorf("a value of 1 MiB: %v, error %v", resp.GetStatuses(), err)
	}
	if _, err := ask(withLimit(entries("k=v"), 1, 0)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a limit with the unit UNKNOWN: %v", err)
	}
	if resp, err := ask(entries("k=v")); err != nil || resp.OverallCode != over {
		t.Errorf("the request after it: %v, error %v", resp, err)
	}
}
