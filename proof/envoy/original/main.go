// SPDX-License-Identifier: Apache-2.0

// Command original serves envoyproxy/ratelimit for a test: its own configuration reader, service and Redis client,
// with a clock that each call sets. It is a module of its own, because the original needs older libraries.
//
//	original -redis HOST:PORT -grpc HOST:PORT -control HOST:PORT
//
// A call has the time in its metadata: unix-time is a number of seconds. A panic of the original becomes an error with
// the code INTERNAL. The control address has two operations: POST /load replaces the configuration, and GET /counters
// returns the statistics.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strconv"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func main() {
	redis := flag.String("redis", "", "host:port of the Redis that counts")
	grpcAddr := flag.String("grpc", "", "host:port of the rate limit service")
	control := flag.String("control", "", "host:port of the operations for tests")
	flag.Parse()
	if err := run(*redis, *grpcAddr, *control); err != nil {
		log.Fatal(err)
	}
}

func run(redis, grpcAddr, control string) error {
	o, err := start(redis)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", grpcAddr)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(o.intercept))
	ratelimitv3.RegisterRateLimitServiceServer(s, o.service)
	failed := make(chan error, 2)
	go func() { failed <- s.Serve(listener) }()
	go func() { failed <- http.ListenAndServe(control, o.handler()) }()
	return <-failed
}

// intercept sets the clock from the metadata of a call, and turns a panic into an error.
func (o *original) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			resp, err = nil, status.Errorf(codes.Internal, "panic: %v", cause)
		}
	}()
	md, _ := metadata.FromIncomingContext(ctx)
	if values := md.Get("unix-time"); len(values) == 1 {
		seconds, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "unix-time: %v", err)
		}
		o.now.Store(seconds)
	}
	return next(ctx, req)
}

func (o *original) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /load", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Merge bool
			Files []file
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := o.load(body.Merge, body.Files...); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		}
	})
	mux.HandleFunc("GET /counters", func(w http.ResponseWriter, _ *http.Request) {
		o.store.Flush()
		if err := json.NewEncoder(w).Encode(o.counts.copy()); err != nil {
			fmt.Println(err)
		}
	})
	return mux
}
