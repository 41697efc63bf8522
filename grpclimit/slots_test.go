// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/memstore"

	"github.com/metehq/mete"
)

func serveSlots(t *testing.T, config grpclimit.Config) (*outcomes, pb.TestServiceClient) {
	t.Helper()
	store, err := memstore.New(memstore.Config{Now: func() bucket.Instant { return bucket.At(time.Now()) }})
	if err != nil {
		t.Fatal(err)
	}
	s := &outcomes{limiter: newLimiter(t, store, `{"name": "guesses", "limit_keys": [], "algorithm": "concurrency", "max": 1, "lease": "30s"}`)}
	return s, serve(t, s, newInterceptor(t, s.limiter, config))
}

func (s *outcomes) free(t *testing.T) bucket.Tokens {
	t.Helper()
	d, err := s.limiter.Peek(t.Context(), mete.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Limits()[0].Remaining()
}

// A call holds its slot until it ends, longer than a lease, and whatever its outcome.
func TestSlots_Unary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := serveSlots(t, grpclimit.Config{})
		canceled, cancel := context.WithCancel(t.Context())
		for name, tt := range map[string]struct {
			ctx     context.Context
			handler func(context.Context) error
		}{
			"success": {t.Context(), func(context.Context) error { return nil }},
			"error":   {t.Context(), func(context.Context) error { return status.Error(codes.NotFound, "") }},
			"the client is gone": {canceled, func(ctx context.Context) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			}},
		} {
			s.unary = func(ctx context.Context) error {
				time.Sleep(5 * time.Minute)
				if got := s.free(t); got != 0 {
					t.Errorf("%s: %v slots are free during the call", name, got)
				}
				if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); status.Code(err) != codes.ResourceExhausted {
					t.Errorf("%s: a second call: %v", name, err)
				}
				return tt.handler(ctx)
			}
			_, _ = client.UnaryCall(tt.ctx, &pb.SimpleRequest{})
			synctest.Wait()
			if got := s.free(t); got != bucket.Token {
				t.Errorf("%s: %v slots are free after the call", name, got)
			}
		}
	})
}

// The messages of a stream use the slot of the stream.
func TestSlots_Stream(t *testing.T) {
	for _, perMessage := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, client := serveSlots(t, grpclimit.Config{PerMessage: perMessage})
			received := 0
			s.stream = func(both pb.TestService_FullDuplexCallServer) error {
				for {
					if _, err := both.Recv(); err == io.EOF {
						return nil
					} else if err != nil {
						return err
					}
					received++
					if got := s.free(t); got != 0 {
						t.Errorf("%v slots are free during the stream", got)
					}
					time.Sleep(time.Minute)
				}
			}
			both, err := client.FullDuplexCall(t.Context())
			for range 5 {
				if err == nil {
					err = both.Send(&pb.StreamingOutputCallRequest{})
				}
			}
			if err == nil {
				err = both.CloseSend()
			}
			if err == nil {
				_, err = both.Recv()
			}
			synctest.Wait()
			if err != io.EOF || received != 5 || s.free(t) != bucket.Token {
				t.Errorf("per message %v: %v after %d messages, %v slots are free at the end", perMessage, err, received, s.free(t))
			}
		})
	}
}
