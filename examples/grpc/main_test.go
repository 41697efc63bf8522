// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
)

// dial starts a server on Redis and returns a client and the limiter.
func dial(t *testing.T, url string) (grpc_health_v1.HealthClient, *mete.Limiter) {
	t.Helper()
	limiter, err := newLimiter(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limiter.Close() })
	server, err := newServer(limiter)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return grpc_health_v1.NewHealthClient(conn), limiter
}

func check(t *testing.T, client grpc_health_v1.HealthClient, keys ...string) codes.Code {
	t.Helper()
	ctx := context.Background()
	for _, key := range keys {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", key)
	}
	_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return status.Code(err)
}

// Two servers share the limits of a key.
func TestServers_ShareLimits(t *testing.T) {
	url := "redis://" + proctest.StartRedis(t).Addr
	first, a := dial(t, url)
	second, b := dial(t, url)
	for try := range 20 { // on a slow machine Redis may be late, and is not asked
		key, other := fmt.Sprint("k", try), fmt.Sprint("other", try)
		late := a.Stats().Local + b.Stats().Local
		var got []codes.Code
		for _, call := range []struct {
			client grpc_health_v1.HealthClient
			keys   []string
		}{{first, []string{key}}, {second, []string{key}}, {first, []string{key}}, {second, []string{key}}, {first, []string{key}},
			{second, []string{other}}, {first, nil}} {
			got = append(got, check(t, call.client, call.keys...))
		}
		if a.Stats().Local+b.Stats().Local > late {
			t.Logf("try %d: Redis was late", try)
			continue
		}
		want := []codes.Code{codes.OK, codes.OK, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted, codes.OK, codes.PermissionDenied}
		if !slices.Equal(got, want) {
			t.Errorf("codes %v, want %v", got, want)
		}
		return
	}
	t.Error("Redis is always late")
}
