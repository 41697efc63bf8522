// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/storetest"
)

// through makes a client's calls pass c.
func through(c *grpclimit.ClientInterceptor) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.Unary()), grpc.WithChainStreamInterceptor(c.Stream())}
}

// refusal returns the error of a server that wants a retry.
func refusal(code codes.Code, details ...protoadapt.MessageV1) error {
	s, err := status.New(code, "later").WithDetails(details...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}

func after(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

func TestClient_Paces(t *testing.T) {
	for name, methods := range map[string][]grpclimit.MethodLimit{
		oneASecond: nil,
		"":         {{Name: "m", Methods: []string{emptyCall}, Key: grpclimit.By("host"), Bucket: perHour(t, 3600), Cost: 1800}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, newLimiter(t, storetest.NewModel(now), name), grpclimit.ClientConfig{Methods: methods})
			client := serve(t, &service{}, nil, through(c)...)
			at, denied := started(client, t.Context(), 3)
			step := time.Second
			if methods != nil { // two at once, then one each half an hour
				at, step = at[1:], 30*time.Minute
			}
			for i, got := range at {
				if want := time.Duration(i) * step; got != want || denied != 0 {
					t.Errorf("policy %q: call %d was answered after %v, want %v; %d denied", name, i, got, want, denied)
				}
			}
		})
	}
}

// A call that cannot be sent in time fails at once.
func TestClient_Unsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rules = `{"rules": [
			{"name": "one", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}},
			{"name": "keyed", "limit_keys": ["header:x-k"], "on_missing": "deny", "algorithm": "token_bucket",
				"algorithm_config": {"rps": 1000, "burst": 1, "cost_source": "header:x-cost", "default_cost": 1, "max_reserved": 1}}]}`
		sent := 0
		s := &service{unary: func(context.Context) error { sent++; return nil }}
		client := serve(t, s, nil, through(newClient(t, newLimiter(t, storetest.NewModel(now), rules), grpclimit.ClientConfig{}))...)
		ctx := as(t.Context(), "x-k", "v")
		soon, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		for i, tt := range []struct {
			ctx  context.Context
			want codes.Code
		}{
			{ctx, codes.OK},
			{soon, codes.DeadlineExceeded},
			{as(ctx, "x-cost", "5"), codes.ResourceExhausted},
			{t.Context(), codes.PermissionDenied},
		} {
			_, err := client.UnaryCall(tt.ctx, &pb.SimpleRequest{})
			if status.Code(err) != tt.want || sent != 1 || time.Since(start) != 0 {
				t.Errorf("call %d: got %v after %v, %d sent, want %v", i, err, time.Since(start), sent, tt.want)
			}
		}
	})
}

// A caller that gives up leaves its tokens to others.
func TestClient_GivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := serve(t, &service{}, nil, through(newClient(t, newLimiter(t, storetest.NewModel(now), oneASecond), grpclimit.ClientConfig{}))...)
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if _, err := client.EmptyCall(ctx, &pb.Empty{}); status.Code(err) != codes.Canceled {
			t.Fatalf("got %v, want Canceled", err)
		}
		if at, _ := started(client, t.Context(), 1); len(at) != 1 || at[0] != 500*time.Millisecond {
			t.Errorf("the next call was answered after %v, want 500ms", at)
		}
	})
}

func TestClient_Retries(t *testing.T) {
	exhausted := codes.ResourceExhausted
	malformed := status.New(exhausted, "").Proto()
	malformed.Details = []*anypb.Any{{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: []byte{0xff}}, {TypeUrl: "?"}}
	for name, tt := range map[string]struct {
		config   grpclimit.ClientConfig
		deadline time.Duration
		err      error // of all attempts but the last
		fails    int   // how many attempts fail
		sent     int
		least    time.Duration // how long it takes, and half as long again at most
	}{
		"once":               {fails: 1, err: refusal(exhausted, after(2*time.Second)), sent: 2, least: 2 * time.Second},
		"twice":              {fails: 2, err: refusal(exhausted, after(2*time.Second)), sent: 3, least: 4 * time.Second},
		"three times":        {fails: 3, err: refusal(exhausted, after(time.Second)), sent: 3, least: 2 * time.Second},
		"five attempts":      {config: grpclimit.ClientConfig{MaxAttempts: 5}, fails: 9, err: refusal(exhausted, after(time.Second)), sent: 5, least: 4 * time.Second},
		"one attempt":        {config: grpclimit.ClientConfig{MaxAttempts: 1}, fails: 9, err: refusal(exhausted, after(time.Second)), sent: 1},
		"the longest":        {fails: 1, err: refusal(exhausted, after(time.Second), after(3*time.Second), &errdetails.QuotaFailure{}), sent: 2, least: 3 * time.Second},
		"no wait":            {fails: 2, err: refusal(exhausted, after(0)), sent: 3, least: 150 * time.Millisecond},
		"no RetryInfo":       {fails: 1, err: refusal(exhausted, &errdetails.QuotaFailure{}), sent: 1},
		"no delay":           {fails: 1, err: refusal(exhausted, &errdetails.RetryInfo{}), sent: 1},
		"another code":       {fails: 1, err: refusal(codes.Unavailable, after(time.Second)), sent: 1},
		"negative":           {fails: 1, err: refusal(exhausted, after(-time.Hour)), sent: 1},
		"invalid":            {fails: 1, err: refusal(exhausted, &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: 1, Nanos: -1}}), sent: 1},
		"for ever":           {fails: 1, err: refusal(exhausted, &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: math.MaxInt64, Nanos: math.MaxInt32}}), sent: 1},
		"ten thousand years": {fails: 1, err: refusal(exhausted, &errdetails.RetryInfo{RetryDelay: &durationpb.Duration{Seconds: 315_576_000_000}}), sent: 1},
		"malformed":          {fails: 1, err: status.ErrorProto(malformed), sent: 1},
		"too long":           {fails: 1, err: refusal(exhausted, after(31*time.Second)), sent: 1},
		"long":               {config: grpclimit.ClientConfig{MaxDelay: time.Hour}, fails: 1, err: refusal(exhausted, after(time.Hour)), sent: 2, least: time.Hour},
		"beyond deadline":    {deadline: time.Second, fails: 1, err: refusal(exhausted, after(time.Second)), sent: 1},
		"within deadline":    {deadline: 2 * time.Second, fails: 1, err: refusal(exhausted, after(time.Second)), sent: 2, least: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			s := &service{unary: func(context.Context) error {
				if sent++; sent <= tt.fails {
					return tt.err
				}
				return nil
			}}
			client := serve(t, s, nil, through(newClient(t, nil, tt.config))...)
			ctx := t.Context()
			if tt.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				defer cancel()
			}
			start := time.Now()
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{})
			took := time.Since(start)
			if sent != tt.sent || took < tt.least || took > tt.least*3/2 {
				t.Errorf("%s: sent %d times in %v, want %d in %v and a little", name, sent, took, tt.sent, tt.least)
			}
			if want := status.Code(tt.err); sent > tt.fails && err != nil || sent <= tt.fails && status.Code(err) != want {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}

func TestClient_CanceledWhileItWaitsToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{unary: func(context.Context) error { return refusal(codes.ResourceExhausted, after(10*time.Second)) }}
		client := serve(t, s, nil, through(newClient(t, nil, grpclimit.ClientConfig{}))...)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}); status.Code(err) != codes.Canceled || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want Canceled after 1s", err, time.Since(start))
		}
	})
}

// A server that refuses everything gets hardly more than it would without retries.
func TestClient_NeverAmplifies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		s := &service{unary: func(context.Context) error {
			sent++
			return refusal(codes.ResourceExhausted, after(time.Millisecond))
		}}
		client := serve(t, s, nil, through(newClient(t, nil, grpclimit.ClientConfig{MaxAttempts: grpclimit.MaxAttempts}))...)
		for range 1000 {
			if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); status.Code(err) != codes.ResourceExhausted {
				t.Fatalf("got %v", err)
			}
		}
		if sent != 1010 {
			t.Errorf("1000 calls were sent %d times, want 1010", sent)
		}
		s.unary = nil
		for range 1000 {
			if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		s.unary = func(context.Context) error { sent++; return refusal(codes.ResourceExhausted, after(time.Millisecond)) }
		sent = 0
		for range 100 {
			_, _ = client.UnaryCall(t.Context(), &pb.SimpleRequest{})
		}
		if sent != 110 {
			t.Errorf("after 1000 successes 100 calls were sent %d times, want 110", sent)
		}
	})
}

func TestNewClient_ReportsEveryError(t *testing.T) {
	_, err := grpclimit.NewClient(nil, grpclimit.ClientConfig{
		MaxAttempts: 11, MaxDelay: -1, Methods: []grpclimit.MethodLimit{{Name: "a"}},
	})
	if err == nil || !strings.HasPrefix(err.Error(), "grpclimit: new client: ") {
		t.Fatalf("got %v, want an error that names this package first", err)
	}
	for _, want := range []string{"11 attempts", "-1ns", `"a": methods`, "need a limiter"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error\n%v\nwhich lacks %q", err, want)
		}
	}
}

// An interceptor that is called without a connection works all the same.
func TestClient_WithoutConnection(t *testing.T) {
	c := newClient(t, newLimiter(t, storetest.NewModel(now), oneASecond), grpclimit.ClientConfig{})
	wrong := errors.New("wrong")
	err := c.Unary()(t.Context(), emptyCall, nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return wrong })
	if err != wrong {
		t.Errorf("got %v, want what the call returned", err)
	}
}
