// SPDX-License-Identifier: Apache-2.0

package envoyapi_test

import (
	"context"
	"fmt"
	"log"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/metehq/mete"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

func ExampleNewRateLimit() {
	rules, err := policy.Load([]byte(`{"rules": [{
		"name": "per-user",
		"match": {"envoy:domain": "shop"},
		"limit_keys": ["descriptor:user"],
		"deadline": "10ms",
		"algorithm_config": {"rate": "1/1m", "burst": 2}
	}]}`), policy.Options{HashKey: []byte("a secret of at least 16 bytes")})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, rules, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	service, err := envoyapi.NewRateLimit(limiter, envoyapi.RateLimitConfig{})
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(server, service)
	// server.Serve(listener) answers Envoy. Here the example calls the service itself.
	for range 3 {
		answer, err := service.ShouldRateLimit(context.Background(), &ratelimitv3.RateLimitRequest{
			Domain: "shop",
			Descriptors: []*commonv3.RateLimitDescriptor{
				{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "user", Value: "alice"}}},
			},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(answer.OverallCode, answer.Statuses[0].LimitRemaining)
	}
	// Output:
	// OK 1
	// OK 0
	// OVER_LIMIT 0
}
