// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/storetest"
)

// everything is one scope.
func everything(context.Context, string) string { return "all" }

// A client that offers more than our server admits is paced: next to nothing is
// refused, and next to nothing of the limit is left.
func TestScope_ClosedLoop(t *testing.T) {
	for _, rules := range []string{
		`{"name": "r", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 20}}`,
		`{"name": "r", "limit_keys": [], "algorithm": "fixed_window", "algorithm_config": {"tokens": 100, "window": "10s"}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			var admitted, refused, failed atomic.Int64
			in := newInterceptor(t, newLimiter(t, storetest.NewModel(now), rules), grpclimit.Config{})
			count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				if status.Code(err) == codes.ResourceExhausted {
					refused.Add(1)
				} else if err == nil {
					admitted.Add(1)
				}
				return err
			}
			c := newClient(t, nil, grpclimit.ClientConfig{Scope: everything})
			client := serve(t, &service{}, in, append(through(c), grpc.WithChainUnaryInterceptor(count))...)

			const minutes, rate = 3, 10
			ctx, cancel := context.WithTimeout(t.Context(), minutes*time.Minute)
			defer cancel()
			ticker := time.NewTicker(time.Second * 10 / (rate * 12)) // 120%
			defer ticker.Stop()
			var group sync.WaitGroup
			for ctx.Err() == nil {
				select {
				case <-ticker.C:
				case <-ctx.Done():
					continue
				}
				group.Go(func() {
					if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}); err != nil && ctx.Err() == nil {
						failed.Add(1)
					}
				})
			}
			group.Wait()
			used := float64(admitted.Load()) / (minutes * 60 * rate)
			lost := float64(refused.Load()) / float64(admitted.Load()+refused.Load())
			t.Logf("%s: %.1f %% of the limit used, %.2f %% refused, %d failed early", rules, 100*used, 100*lost, failed.Load())
			if used < 0.98 || lost > 0.01 {
				t.Errorf("%s: %.1f %% of the limit used, %.2f %% refused, want 98 and 1", rules, 100*used, 100*lost)
			}
		})
	}
}

// All calls of a scope obey a server's response to one of them; other scopes do not.
func TestScope_KeepsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, refuse := 0, true
		s := &service{unary: func(context.Context) error {
			if sent++; refuse {
				return refusal(codes.ResourceExhausted, after(10*time.Second))
			}
			return nil
		}}
		scope := func(_ context.Context, method string) string {
			if method == fullDuplexCall {
				return ""
			}
			return method
		}
		c := newClient(t, nil, grpclimit.ClientConfig{MaxAttempts: 1, Scope: scope})
		client := serve(t, s, nil, through(c)...)
		if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("got %v", err)
		}
		refuse = false

		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := client.UnaryCall(soon, &pb.SimpleRequest{}); status.Code(err) != codes.DeadlineExceeded || sent != 1 || time.Since(start) != 0 {
			t.Errorf("a call whose deadline is sooner: got %v after %v, sent %d times", err, time.Since(start), sent)
		}
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil || time.Since(start) != 0 {
			t.Errorf("another scope: got %v after %v", err, time.Since(start))
		}
		if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); err != nil || time.Since(start) < 10*time.Second || time.Since(start) > 11*time.Second {
			t.Errorf("a call that can wait: got %v after %v, want 10s and a little", err, time.Since(start))
		}
	})
}

// A scope learns from streams, too, of every kind and end.
func TestScope_Streams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInterceptor(t, newLimiter(t, storetest.NewModel(now), oneASecond), grpclimit.Config{})
		c := newClient(t, nil, grpclimit.ClientConfig{Scope: everything})
		client := serve(t, &service{}, in, through(c)...)

		ctx, cancel := context.WithCancel(t.Context())
		both, err := client.FullDuplexCall(ctx)
		if err == nil {
			err = echo(both)
		}
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		out, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("the second stream: got %v, want ResourceExhausted", err)
		}
		start := time.Now()
		for i := range 3 {
			sent, err := client.StreamingInputCall(t.Context())
			if err == nil {
				_, err = sent.CloseAndRecv()
			}
			if err != nil {
				t.Errorf("stream %d after the refusal: %v", i, err)
			}
		}
		if took := time.Since(start); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("three more streams took %v, want 3s and a little", took)
		}
	})
}

func TestClient_StreamPerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(t, storetest.NewModel(now), oneASecond)
		client := serve(t, &service{}, nil, through(newClient(t, lim, grpclimit.ClientConfig{PerMessage: true}))...)
		start := time.Now()
		sent, err := client.StreamingInputCall(t.Context())
		for range 4 {
			if err == nil {
				err = sent.Send(&pb.StreamingInputCallRequest{})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		reply, err := sent.CloseAndRecv()
		if err != nil || reply.AggregatedPayloadSize != 4 || time.Since(start) != 3*time.Second {
			t.Errorf("got %v (%v) after %v, want 4 messages after 3s", reply, err, time.Since(start))
		}

		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		both, err := client.FullDuplexCall(ctx)
		if err == nil {
			err = echo(both)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := both.Send(&pb.StreamingOutputCallRequest{}); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a message whose turn comes after the deadline: got %v", err)
			}
		}
		if _, err := both.Recv(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("its stream: got %v, want it to be over", err)
		}
	})
}
