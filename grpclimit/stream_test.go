// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/storetest"
)

const three = `{"name": "three", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1m", "burst": 3}}`

// echo sends a message and receives its echo.
func echo(both pb.TestService_FullDuplexCallClient) error {
	if err := both.Send(&pb.StreamingOutputCallRequest{}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err := both.Recv()
	return err
}

// The call pays for the first message, so that one message costs one take.
func TestStream_PerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, three, grpclimit.Config{PerMessage: true})
		both, err := client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := echo(both); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		err = echo(both)
		if code, retry, _ := details(t, err); code != codes.ResourceExhausted || retry.GetRetryDelay().AsDuration() != time.Minute {
			t.Errorf("message 3: got %v, retry %v, want to retry in 1m", err, retry)
		}
		if got := both.Trailer()["ratelimit"]; len(got) != 1 || got[0] != `"three";r=0;t=60` {
			t.Errorf("got ratelimit %q", got)
		}
		time.Sleep(time.Minute)
		out, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		for err == nil {
			_, err = out.Recv()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("a server's stream after the wait, of one message: got %v", err)
		}
	})
}

// A message that has to wait holds its stream back, and is not lost.
func TestStream_PerMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, err := limited(t, leaky, grpclimit.Config{PerMessage: true}).StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 5 {
			if err := in.Send(&pb.StreamingInputCallRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		reply, err := in.CloseAndRecv()
		if err != nil || reply.AggregatedPayloadSize != 5 || time.Since(start) != 4*time.Second {
			t.Errorf("got %v (%v) after %v, want 5 messages after 4s", reply, err, time.Since(start))
		}
	})
}

// stubborn is a handler that does not take an error for an answer.
type stubborn struct {
	service
	errs chan error
}

func (s *stubborn) FullDuplexCall(both pb.TestService_FullDuplexCallServer) error {
	for range 5 {
		_, err := both.Recv()
		s.errs <- err
	}
	return nil
}

// Once a message was denied its stream stays denied, whatever has refilled: a
// handler cannot lose one in the middle.
func TestStream_PerMessageStaysDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInterceptor(t, newLimiter(t, storetest.NewModel(now), three), grpclimit.Config{PerMessage: true})
		s := &stubborn{errs: make(chan error)}
		both, err := serve(t, s, in).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []codes.Code{codes.OK, codes.OK, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted} {
			if i == 4 {
				time.Sleep(time.Hour)
			}
			if err := both.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				t.Fatal(err)
			}
			if err := <-s.errs; status.Code(err) != want {
				t.Errorf("message %d: the handler got %v, want %v", i, err, want)
			}
		}
	})
}
