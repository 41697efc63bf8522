// SPDX-License-Identifier: Apache-2.0

package grpclimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/grpclimit"
)

const (
	// leaky starts a call a second and lets two more wait.
	leaky = `{"name": "even", "limit_keys": [], "algorithm": "leaky_bucket", "algorithm_config": {"rps": 1, "queue": 2}}`

	oneASecond = `{"name": "one", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`
)

// started runs n calls at once and returns when, in order, the server answered
// those that it admitted, and how many it did not.
func started(client pb.TestServiceClient, ctx context.Context, n int) (at []time.Duration, denied int) {
	start := time.Now()
	var mu sync.Mutex
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			_, err := client.EmptyCall(ctx, &pb.Empty{})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				denied++
				return
			}
			at = append(at, time.Since(start))
		})
	}
	group.Wait()
	return at, denied
}

func TestUnary_Waits(t *testing.T) {
	for name, tt := range map[string]struct {
		rules  string
		config grpclimit.Config
	}{
		"leaky bucket":    {leaky, grpclimit.Config{}},
		"reserved tokens": {oneASecond, grpclimit.Config{MaxWait: 2 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			at, denied := started(limited(t, tt.rules, tt.config), t.Context(), 5)
			if len(at) != 3 || denied != 2 {
				t.Fatalf("%s: %d calls of 5 were answered, %d denied, want 3 and 2", name, len(at), denied)
			}
			for i, got := range at {
				if want := time.Duration(i) * time.Second; got != want {
					t.Errorf("%s: call %d was answered after %v, want %v", name, i, got, want)
				}
			}
		})
	}
}

// A call that is canceled while it waits leaves its place to others.
func TestUnary_GivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, leaky, grpclimit.Config{})
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		if _, err := client.EmptyCall(ctx, &pb.Empty{}); status.Code(err) != codes.Canceled {
			t.Fatalf("got %v, want Canceled", err)
		}
		synctest.Wait() // until the server has noticed
		start := time.Now()
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil || time.Since(start) != 500*time.Millisecond {
			t.Errorf("the next call was answered after %v (%v), want 500ms", time.Since(start), err)
		}
	})
}

// A call with a turn after its deadline is denied at once with the time of its turn, and its place is free for
// others.
func TestUnary_TurnAfterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, leaky, grpclimit.Config{})
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			_, err := client.EmptyCall(ctx, &pb.Empty{})
			code, retry, quota := details(t, err)
			if code != codes.ResourceExhausted || retry.GetRetryDelay().AsDuration() != time.Second || len(quota.GetViolations()) != 1 {
				t.Fatalf("got %v, retry %v, quota %v, want to retry in 1s", err, retry, quota)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the denials took %v", took)
		}
		time.Sleep(time.Second)
		if at, _ := started(client, t.Context(), 1); len(at) != 1 || at[0] != 0 {
			t.Errorf("after exactly the wait: answered after %v, want at once", at)
		}
	})
}

// MaxWait ends where the deadline does: such a call is denied, not left to die.
func TestUnary_MaxWaitWithinDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, oneASecond, grpclimit.Config{MaxWait: time.Hour})
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := client.EmptyCall(ctx, &pb.Empty{})
		if code, retry, _ := details(t, err); code != codes.ResourceExhausted || retry.GetRetryDelay().AsDuration() != 500*time.Millisecond {
			t.Errorf("got %v, retry %v, want to retry in 500ms, from when on it may wait for so long", err, retry)
		}
	})
}

// A turn that is longer off than MaxDelay is a denial, and the hook learns so.
func TestUnary_MaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		client := limited(t, leaky, grpclimit.Config{MaxDelay: 900 * time.Millisecond, OnDecision: func(_ context.Context, d *mete.Decision) {
			seen = append(seen, fmt.Sprintf("%v %s %s", d.Allowed, d.Rule, d.Reason))
		}})
		if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
			t.Fatal(err)
		}
		_, err := client.EmptyCall(t.Context(), &pb.Empty{})
		if code, retry, _ := details(t, err); code != codes.ResourceExhausted || retry.GetRetryDelay().AsDuration() != 100*time.Millisecond {
			t.Errorf("got %v, retry %v, want to retry in 100ms", err, retry)
		}
		if want := []string{"true even ", "false even leaky_bucket_exceeded"}; !slices.Equal(seen, want) {
			t.Errorf("the hook saw %q, want %q", seen, want)
		}
	})
}
