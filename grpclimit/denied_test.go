// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/grpclimit"
)

// Denied replaces the status of a denied call, and the trailers stay. No error of it admits a
// call.
func TestDenied(t *testing.T) {
	for _, tt := range []struct {
		what    string
		denied  func(context.Context, string, mete.Decision) error
		code    codes.Code
		message string
	}{
		{"a status", func(_ context.Context, method string, d mete.Decision) error {
			return status.Error(codes.FailedPrecondition, method+" "+d.Rule+" "+d.Reason)
		}, codes.FailedPrecondition, unaryCall + " free token_bucket_exceeded"},
		{"an error without a status", func(context.Context, string, mete.Decision) error { return errors.New("later") }, codes.Unknown, "later"},
		{"nil", func(context.Context, string, mete.Decision) error { return nil }, codes.ResourceExhausted, `limit "free" is exceeded: retry in 2.5s`},
		{"OK", func(context.Context, string, mete.Decision) error { return status.Error(codes.OK, "") }, codes.ResourceExhausted, `limit "free" is exceeded: retry in 2.5s`},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := limited(t, byKey, grpclimit.Config{Denied: tt.denied})
			ctx := as(t.Context(), "x-api-key", "k")
			for i := range 3 {
				var trailer metadata.MD
				_, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Trailer(&trailer))
				if i < 2 {
					if err != nil {
						t.Errorf("%s, call %d: %v", tt.what, i, err)
					}
					continue
				}
				if got := status.Convert(err); got.Code() != tt.code || got.Message() != tt.message {
					t.Errorf("%s: got %v, want %v with %q", tt.what, err, tt.code, tt.message)
				}
				if len(trailer["ratelimit"]) != 1 || len(trailer["grpc-retry-pushback-ms"]) != 1 || len(trailer["x-ratelimit-reason"]) != 1 {
					t.Errorf("%s: got trailer %v, want the trailer of a denial", tt.what, trailer)
				}
			}
		})
	}
}

// A stream whose message is denied ends with the error of Denied.
func TestDenied_PerMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, byKey, grpclimit.Config{PerMessage: true, Denied: func(_ context.Context, method string, _ mete.Decision) error {
			return status.Error(codes.Aborted, method)
		}})
		stream, err := client.FullDuplexCall(as(t.Context(), "x-api-key", "k"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			if i < 2 && err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
		if got := status.Convert(err); got.Code() != codes.Aborted || got.Message() != fullDuplexCall {
			t.Errorf("got %v, want Aborted with the method", err)
		}
	})
}

// Exempt calls and streams pass, cost nothing, have no trailers, and no hook sees them.
func TestExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decisions := 0
		client := limited(t, byKey, grpclimit.Config{
			PerMessage: true,
			OnDecision: func(context.Context, *mete.Decision) { decisions++ },
			Exempt:     func(_ context.Context, method string) bool { return method == emptyCall || method == fullDuplexCall },
		})
		ctx := as(t.Context(), "x-api-key", "k")
		exempt := func() {
			t.Helper()
			var trailer metadata.MD
			if _, err := client.EmptyCall(ctx, &pb.Empty{}, grpc.Trailer(&trailer)); err != nil || len(trailer["ratelimit"]) > 0 {
				t.Errorf("exempt call: got %v with trailer %v", err, trailer)
			}
		}
		for range 5 {
			exempt()
		}
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatalf("message of an exempt stream: %v", err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
			if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}); status.Code(err) != want {
				t.Errorf("limited call %d: got %v, want %v", i, err, want)
			}
		}
		exempt()
		if decisions != 3 {
			t.Errorf("the hook saw %d decisions, want 3", decisions)
		}
	})
}
