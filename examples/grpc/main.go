// SPDX-License-Identifier: Apache-2.0

// This program is a gRPC server with a rate limit. Each API key in the metadata x-api-key gets bursts of 3 calls, and
// then one call per minute. All servers on one Redis share the limits:
//
//	redis-server --port 6379 --save "" &
//	go run ./examples/grpc 'redis://127.0.0.1:6379?prefix=shop:'
//	grpcurl -plaintext -H 'x-api-key: k1' 127.0.0.1:9000 grpc.health.v1.Health/Check
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/metehq/mete"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

const rules = `{"rules": [{"name": "per-key", "limit_keys": ["header:x-api-key"],
	"rate": "1/1m", "burst": 3, "on_missing": "deny", "on_store_error": "local"}]}`

func newLimiter(ctx context.Context, url string) (*mete.Limiter, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	return redisstore.NewLimiter(ctx, url, matcher)
}

func newServer(limiter *mete.Limiter) (*grpc.Server, error) {
	limited, err := grpclimit.New(limiter, grpclimit.Config{})
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(limited.Unary()), grpc.ChainStreamInterceptor(limited.Stream()))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer()) // register your services here
	reflection.Register(server)
	return server, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: grpc URL, such as redis://127.0.0.1:6379")
	}
	limiter, err := newLimiter(context.Background(), os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer limiter.Close()
	server, err := newServer(limiter)
	if err != nil {
		log.Print(err)
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:9000")
	if err != nil {
		log.Print(err)
		return
	}
	log.Print(server.Serve(listener))
}
