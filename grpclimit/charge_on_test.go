// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/storetest"
)

// outcomes is a service behind a rule named guesses, of 100 tokens per day.
type outcomes struct {
	service
	limiter *mete.Limiter
	stream  func(pb.TestService_FullDuplexCallServer) error
}

func (s *outcomes) FullDuplexCall(both pb.TestService_FullDuplexCallServer) error {
	return s.stream(both)
}

func serveOutcomes(t *testing.T, fields string, config grpclimit.Config) (*outcomes, pb.TestServiceClient) {
	t.Helper()
	s := &outcomes{limiter: newLimiter(t, storetest.NewModel(now), `{"name": "guesses", "limit_keys": [], "algorithm_config": {"rate": "100/1d", "burst": 100, `+fields+`}}`)}
	return s, serve(t, s, newInterceptor(t, s.limiter, config))
}

// spent returns the missing tokens of the rule's bucket, and fills it.
func (s *outcomes) spent(t *testing.T) bucket.Tokens {
	t.Helper()
	b, err := s.limiter.ResetBucket(t.Context(), "guesses:")
	if err != nil {
		t.Fatal(err)
	}
	return b.Missing()
}

// Codes decide, and statuses too: each list alone judges all responses.
func TestChargeOn_Unary(t *testing.T) {
	for _, list := range []string{`"grpc": ["UNAUTHENTICATED", "INTERNAL", "UNKNOWN"]`, `"status": [401, "5xx"]`, `"grpc": ["UNAUTHENTICATED", "INTERNAL", "UNKNOWN"], "status": [200]`} {
		t.Run(list, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := serveOutcomes(t, `"charge_on": {`+list+`}`, grpclimit.Config{})
				canceled, cancel := context.WithCancel(t.Context())
				for name, tt := range map[string]struct {
					ctx     context.Context
					handler func(context.Context) error
					want    bucket.Tokens
				}{
					"listed":           {t.Context(), func(context.Context) error { return status.Error(codes.Unauthenticated, "") }, 1},
					"success":          {t.Context(), func(context.Context) error { return nil }, 0},
					"not listed":       {t.Context(), func(context.Context) error { return status.Error(codes.NotFound, "") }, 0},
					"without a code":   {t.Context(), func(context.Context) error { return errors.New("x") }, 1},
					"a wrapped status": {t.Context(), func(context.Context) error { return fmt.Errorf("x: %w", status.Error(codes.NotFound, "")) }, 0},
					"the client is gone": {canceled, func(ctx context.Context) error {
						cancel()
						<-ctx.Done()
						return ctx.Err()
					}, 1},
				} {
					s.unary = tt.handler
					_, _ = client.UnaryCall(tt.ctx, &pb.SimpleRequest{})
					synctest.Wait()
					if got := s.spent(t); got != tt.want*bucket.Token {
						t.Errorf("%s: %v tokens spent, want %v", name, got, tt.want)
					}
				}
			})
		})
	}
}

// 64 parallel guesses against a limit of five admit five.
func TestChargeOn_ParallelGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := serveOutcomes(t, `"fixed_cost": 20, "charge_on": {"grpc": ["UNAUTHENTICATED"]}`, grpclimit.Config{})
		all, guessed := make(chan struct{}), atomic.Int64{}
		s.unary = func(context.Context) error {
			guessed.Add(1)
			<-all
			return status.Error(codes.Unauthenticated, "wrong")
		}
		var calls sync.WaitGroup
		for range 64 {
			calls.Go(func() { _, _ = client.UnaryCall(t.Context(), &pb.SimpleRequest{}) })
		}
		synctest.Wait()
		close(all)
		calls.Wait()
		if guessed.Load() != 5 || s.spent(t) != 100*bucket.Token {
			t.Errorf("%d guesses passed, want 5", guessed.Load())
		}
	})
}

// Costs come from the header, from the trailer, and from the messages.
func TestChargeOn_Costs(t *testing.T) {
	cost := metadata.Pairs("x-cost", "7")
	synctest.Test(t, func(t *testing.T) {
		s, client := serveOutcomes(t, `"cost_source": "response_header:x-cost", "default_cost": 3`, grpclimit.Config{})
		for name, tt := range map[string]struct {
			send func(context.Context) error
			want bucket.Tokens
		}{
			"header":  {func(ctx context.Context) error { return grpc.SetHeader(ctx, cost) }, 7},
			"sent":    {func(ctx context.Context) error { return grpc.SendHeader(ctx, cost) }, 7},
			"trailer": {func(ctx context.Context) error { return grpc.SetTrailer(ctx, cost) }, 7},
			"none":    {func(context.Context) error { return nil }, 3},
			"repeated": {func(ctx context.Context) error {
				return errors.Join(grpc.SetHeader(ctx, cost), grpc.SetTrailer(ctx, cost))
			}, 3},
		} {
			s.unary = tt.send
			if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); err != nil {
				t.Fatal(err)
			}
			if got := s.spent(t); got != tt.want*bucket.Token {
				t.Errorf("%s: %v tokens spent, want %v", name, got, tt.want)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, client := serveOutcomes(t, `"charge_on": {"response_bytes": 1}, "default_cost": 3`, grpclimit.Config{})
		payload := &pb.Payload{Body: make([]byte, 20)}
		if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{Payload: payload}); err != nil {
			t.Fatal(err)
		}
		if got := s.spent(t); got != 24*bucket.Token { // two tags and two lengths
			t.Errorf("%v tokens spent, want 24", got)
		}
	})
}

// A stream is settled at its end. A canceled stream pays for the messages before that.
func TestChargeOn_Stream(t *testing.T) {
	reply := &pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, 20)}}
	for name, tt := range map[string]struct {
		fields string
		stream func(pb.TestService_FullDuplexCallServer) error
		want   bucket.Tokens
	}{
		"success": {`"charge_on": {"grpc": ["UNAUTHENTICATED"]}`, func(pb.TestService_FullDuplexCallServer) error { return nil }, 0},
		"listed":  {`"charge_on": {"grpc": ["UNAUTHENTICATED"]}`, func(pb.TestService_FullDuplexCallServer) error { return status.Error(codes.Unauthenticated, "") }, 1},
		"cost in the trailer": {`"cost_source": "response_header:x-cost"`, func(both pb.TestService_FullDuplexCallServer) error {
			both.SetTrailer(metadata.Pairs("x-cost", "7"))
			return nil
		}, 7},
		"cost in the header by its context": {`"cost_source": "response_header:x-cost"`, func(both pb.TestService_FullDuplexCallServer) error {
			return grpc.SetHeader(both.Context(), metadata.Pairs("x-cost", "7"))
		}, 7},
		"bytes": {`"charge_on": {"response_bytes": 1}`, func(both pb.TestService_FullDuplexCallServer) error {
			return errors.Join(both.Send(reply), both.Send(reply))
		}, 48},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := serveOutcomes(t, tt.fields, grpclimit.Config{})
				s.stream = tt.stream
				both, err := client.FullDuplexCall(t.Context())
				for err == nil {
					_, err = both.Recv()
				}
				if got := s.spent(t); got != tt.want*bucket.Token {
					t.Errorf("%v tokens spent, want %v", got, tt.want)
				}
			})
		})
	}
	for name, tt := range map[string]struct {
		sends int
		want  bucket.Tokens
	}{"canceled before a message": {0, 1}, "canceled after a message": {1, 24}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := serveOutcomes(t, `"charge_on": {"response_bytes": 1}`, grpclimit.Config{})
				s.stream = func(both pb.TestService_FullDuplexCallServer) error {
					for range tt.sends {
						_ = both.Send(reply)
					}
					<-both.Context().Done()
					return both.Context().Err()
				}
				ctx, cancel := context.WithCancel(t.Context())
				if _, err := client.FullDuplexCall(ctx); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				cancel()
				synctest.Wait()
				if got := s.spent(t); got != tt.want*bucket.Token {
					t.Errorf("%v tokens spent, want %v", got, tt.want)
				}
			})
		})
	}
}

// A message of a stream keeps its charge, and the call's is refunded.
func TestChargeOn_PerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := serveOutcomes(t, `"charge_on": {"grpc": ["UNAUTHENTICATED"]}`, grpclimit.Config{PerMessage: true})
		s.stream = func(both pb.TestService_FullDuplexCallServer) error {
			for range 3 {
				if _, err := both.Recv(); err != nil {
					return err
				}
			}
			return nil
		}
		both, err := client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_ = both.Send(&pb.StreamingOutputCallRequest{})
		}
		_, _ = both.Recv()
		if got := s.spent(t); got != 2*bucket.Token {
			t.Errorf("%v tokens spent, want 2", got)
		}
	})
}
