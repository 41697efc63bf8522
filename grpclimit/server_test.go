// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/grpclimit"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

const byKey = `{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
	"algorithm_config": {"rps": 0.4, "burst": 2}}`

// as sends metadata with a call.
func as(ctx context.Context, pairs ...string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// details returns what a client decodes of an error.
func details(t *testing.T, err error) (code codes.Code, retry *errdetails.RetryInfo, quota *errdetails.QuotaFailure) {
	t.Helper()
	s := status.Convert(err)
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			retry = d
		case *errdetails.QuotaFailure:
			quota = d
		default:
			t.Errorf("%v: unknown detail %T", err, detail)
		}
	}
	return s.Code(), retry, quota
}

func TestUnary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, byKey, grpclimit.Config{})
		ctx := as(t.Context(), "x-api-key", "s3cr3t-k1")
		var header, trailer metadata.MD
		call := func() error {
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
			return err
		}
		for i, want := range []string{`"free";r=1;t=3`, `"free";r=0;t=3`} {
			err := call()
			if got := trailer["ratelimit"]; err != nil || len(got) != 1 || got[0] != want {
				t.Fatalf("call %d: got %v, ratelimit %q, want %s", i, err, got, want)
			}
			if got := trailer["ratelimit-policy"]; len(got) != 1 || got[0] != `"free";q=2;w=5` {
				t.Errorf("call %d: got ratelimit-policy %q", i, got)
			}
			if trailer["grpc-retry-pushback-ms"] != nil || header["ratelimit"] != nil {
				t.Errorf("call %d: got header %v, trailer %v", i, header, trailer)
			}
		}
		time.Sleep(2500*time.Millisecond - time.Microsecond)
		err := call()
		code, retry, quota := details(t, err)
		if code != codes.ResourceExhausted || retry.GetRetryDelay().AsDuration() != time.Microsecond {
			t.Errorf("a microsecond early: got %v, %v, want to retry after 1 µs", err, retry)
		}
		if v := quota.GetViolations(); len(v) != 1 || v[0].Subject != "rule:free" || v[0].QuotaId != "free" || v[0].QuotaValue != 2 {
			t.Errorf("got violations %v", v)
		}
		if got := fmt.Sprint(trailer["grpc-retry-pushback-ms"], trailer["x-ratelimit-reason"], trailer["ratelimit"]); got != `[1] [token_bucket_exceeded] ["free";r=0;t=1]` {
			t.Errorf("got trailer %v: %s", trailer, got)
		}
		if len(trailer["retry-after"])+len(trailer["cache-control"]) > 0 {
			t.Errorf("got trailer %v, which has fields of HTTP", trailer)
		}
		if all := fmt.Sprint(err, quota, trailer); strings.Contains(all, "s3cr3t") {
			t.Errorf("the answer names the key: %s", all)
		}
		if _, err := client.UnaryCall(as(t.Context(), "x-api-key", "other"), &pb.SimpleRequest{}); err != nil {
			t.Errorf("another key: %v", err)
		}
		time.Sleep(time.Microsecond)
		if err := call(); err != nil {
			t.Errorf("after exactly the wait: %v", err)
		}
	})
}

// gRPC's own retries handle a denial without headers, and wait as long as they must.
func TestUnary_BuiltInRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInterceptor(t, newLimiter(t, storetest.NewModel(now), byKey), grpclimit.Config{})
		client := serve(t, &service{}, in, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
			"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
			"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
		ctx := as(t.Context(), "x-api-key", "k")
		start := time.Now()
		for i := range 3 {
			if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		if took := time.Since(start); took != 2500*time.Millisecond {
			t.Errorf("took %v, want 2.5s", took)
		}
	})
}

func TestStream_EveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const two = `{"name": "two", "limit_keys": ["path"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 2}}`
		client := limited(t, two, grpclimit.Config{})
		kinds := map[string]func() (metadata.MD, error){
			"server": func() (metadata.MD, error) {
				s, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
				for err == nil {
					_, err = s.Recv()
				}
				return s.Trailer(), err
			},
			"client": func() (metadata.MD, error) {
				s, err := client.StreamingInputCall(t.Context())
				for range 3 {
					if err == nil {
						err = s.Send(&pb.StreamingInputCallRequest{})
					}
				}
				if err == nil || errors.Is(err, io.EOF) {
					_, err = s.CloseAndRecv()
				}
				return s.Trailer(), err
			},
			"both": func() (metadata.MD, error) {
				s, err := client.FullDuplexCall(t.Context())
				for range 3 {
					if err == nil {
						if err = s.Send(&pb.StreamingOutputCallRequest{}); err == nil || errors.Is(err, io.EOF) {
							_, err = s.Recv()
						}
					}
				}
				if err == nil {
					s.CloseSend()
					_, err = s.Recv()
				}
				return s.Trailer(), err
			},
		}
		for kind, run := range kinds {
			for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
				trailer, err := run()
				if errors.Is(err, io.EOF) {
					err = nil
				}
				code, retry, _ := details(t, err)
				if code != want || (retry != nil) != (want != codes.OK) || len(trailer["ratelimit"]) != 1 {
					t.Errorf("%s stream %d: got %v, retry %v, trailer %v, want %v", kind, i, err, retry, trailer, want)
				}
			}
		}
	})
}

// A brokenStore never answers.
type brokenStore struct{ mete.Store }

func (brokenStore) DeriveKey(context.Context, string) (key [32]byte, err error) { return key, nil }

func (brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, &mete.StoreError{Op: "take", Store: "broken", Err: errors.New("secret address 10.1.2.3")}
}

func TestUnary_BrokenStore(t *testing.T) {
	for then, want := range map[string]codes.Code{"open": codes.OK, "closed": codes.Unavailable} {
		rules := strings.Replace(byKey, `"name"`, `"on_store_error": "`+then+`", "name"`, 1)
		client := serve(t, &service{}, newInterceptor(t, newLimiter(t, brokenStore{}, rules), grpclimit.Config{}))
		var trailer metadata.MD
		_, err := client.UnaryCall(as(t.Context(), "x-api-key", "k"), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
		code, retry, quota := details(t, err)
		if code != want || trailer["ratelimit"] != nil || quota != nil || (retry != nil) != (want != codes.OK) {
			t.Errorf("%s: got %v, retry %v, quota %v, trailer %v, want %v", then, err, retry, quota, trailer, want)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: got %v, which shows the store's error", then, err)
		}
	}
}

// A denial by the local buckets is a true one.
func TestUnary_BrokenStoreLocal(t *testing.T) {
	rules := strings.Replace(byKey, `"name"`, `"on_store_error": "local", "name"`, 1)
	client := serve(t, &service{}, newInterceptor(t, newLimiter(t, brokenStore{}, rules), grpclimit.Config{}))
	for range 100 {
		_, err := client.UnaryCall(as(t.Context(), "x-api-key", "k"), &pb.SimpleRequest{})
		if err == nil {
			continue
		}
		code, retry, quota := details(t, err)
		if code != codes.ResourceExhausted || retry == nil || quota == nil {
			t.Errorf("got %v, retry %v, quota %v; want a denial like any other", err, retry, quota)
		}
		return
	}
	t.Error("100 calls are allowed")
}

func TestUnary_NeverAndMissing(t *testing.T) {
	const never = `{"name": "big", "limit_keys": [], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1, "cost_source": "header:x-cost", "default_cost": 1, "max_cost": 1000}}`
	missing := strings.Replace(byKey, `"name"`, `"on_missing": "deny", "name"`, 1)
	for _, tt := range []struct {
		rules string
		want  codes.Code
		quota bool
	}{{never, codes.ResourceExhausted, true}, {missing, codes.PermissionDenied, false}} {
		client := limited(t, tt.rules, grpclimit.Config{})
		var trailer metadata.MD
		_, err := client.UnaryCall(as(t.Context(), "x-cost", "100"), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
		code, retry, quota := details(t, err)
		if code != tt.want || retry != nil || (quota != nil) != tt.quota || len(trailer["grpc-retry-pushback-ms"]) != 1 || trailer["grpc-retry-pushback-ms"][0] != "-1" {
			t.Errorf("got %v, retry %v, quota %v, trailer %v, want %v, to be never retried", err, retry, quota, trailer, tt.want)
		}
	}
}

func TestUnary_ShadowIsSilent(t *testing.T) {
	const shadow = `{"name": "next", "limit_keys": [], "mode": "shadow", "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`
	client := limited(t, shadow, grpclimit.Config{})
	for i := range 3 {
		var trailer metadata.MD
		_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
		if err != nil || len(trailer) != 0 {
			t.Errorf("call %d: got %v, trailer %v", i, err, trailer)
		}
	}
}

func TestUnary_OmitTrailers(t *testing.T) {
	client := limited(t, strings.Replace(byKey, `"burst": 2`, `"burst": 1`, 1), grpclimit.Config{OmitTrailers: true})
	for i, want := range []int{0, 1} {
		var trailer metadata.MD
		_, err := client.UnaryCall(as(t.Context(), "x-api-key", "k"), &pb.SimpleRequest{}, grpc.Trailer(&trailer))
		if (err != nil) != (want > 0) || len(trailer["ratelimit"]) != want {
			t.Errorf("call %d: got %v, trailer %v", i, err, trailer)
		}
	}
}

func TestNew_ReportsEveryError(t *testing.T) {
	_, err := grpclimit.New(nil, grpclimit.Config{
		TrustedHops: 33, MaxWait: -1, ForwardedKey: "a b",
		Methods: []grpclimit.MethodLimit{{Name: "a", Methods: []string{"*"}}, {Name: "b"}},
	})
	if err == nil || !strings.HasPrefix(err.Error(), "grpclimit: new: ") {
		t.Fatalf("got %v, want an error that names this package first", err)
	}
	for _, want := range []string{"limiter is required", "33 hops", "-1ns", `"a": a key`, `"b": methods`, `header "a b"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error\n%v\nwhich lacks %q", err, want)
		}
	}
}
