// SPDX-License-Identifier: Apache-2.0

package queuewait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// leaky starts a request every ten seconds, and lets five wait.
const leaky = `{"name": "leaky", "limit_keys": [], "algorithm": "leaky_bucket", "algorithm_config": {"rate": "1/10s", "queue": 5}}`

// taker takes from a limiter with the clock of a bubble, of whose bucket one token
// is gone.
func taker(t *testing.T, rules string, most time.Duration) (*mete.Limiter, *queuewait.Taker) {
	t.Helper()
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return bucket.At(time.Now()) }), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tk := queuewait.NewTaker(lim, most, 0)
	if d, err := tk.Take(t.Context(), mete.Request{}, false, nil); err != nil || !d.Allowed {
		t.Fatalf("the first request: got %+v (%v)", d, err)
	}
	return lim, tk
}

func TestTake_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tk := taker(t, leaky, 0)
		begin, told := time.Now(), time.Duration(0)
		d, err := tk.Take(t.Context(), mete.Request{}, false, func(wait time.Duration) { told = wait })
		if err != nil || !d.Allowed || time.Since(begin) != 10*time.Second || told != 10*time.Second {
			t.Errorf("got %+v (%v) after %v, told %v before, want it allowed after 10s", d, err, time.Since(begin), told)
		}
	})
}

// A request with too long a wait is denied and refunded at once, and admitted after its RetryAfter.
func TestTake_TooLong(t *testing.T) {
	for name, tt := range map[string]struct {
		most, timeout, want time.Duration
	}{
		"longer than the most": {most: 9 * time.Second, want: time.Second},
		"past the deadline":    {timeout: 4 * time.Second, want: 10 * time.Second},
		"at the deadline":      {timeout: 10 * time.Second, want: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, tk := taker(t, leaky, tt.most)
				ask := func() (mete.Decision, error) {
					ctx, cancel := t.Context(), func() {}
					if tt.timeout > 0 {
						ctx, cancel = context.WithTimeout(ctx, tt.timeout)
					}
					defer cancel()
					return tk.Take(ctx, mete.Request{}, false, nil)
				}
				begin := time.Now()
				d, err := ask()
				if err != nil || d.Allowed || d.Wait != 0 || d.Taken != 0 || d.RetryAfter != tt.want || d.Rule != "leaky" || d.Reason != "leaky_bucket_exceeded" {
					t.Errorf("got %+v (%v), want a denial for %v", d, err, tt.want)
				}
				if s := d.Limits()[0]; s.Allowed || s.RetryAfter != tt.want {
					t.Errorf("its limit says allowed %v, retry after %v", s.Allowed, s.RetryAfter)
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("the denial took %v", took)
				}
				if p, err := lim.Peek(t.Context(), mete.Request{}); err != nil || p.Wait != 10*time.Second {
					t.Errorf("the next one would wait %v (%v), want 10s: the place was given back", p.Wait, err)
				}
				time.Sleep(d.RetryAfter)
				if d, err := ask(); err != nil || !d.Allowed {
					t.Errorf("after the wait: got %+v (%v)", d, err)
				}
			})
		})
	}
}

func TestTake_Canceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, tk := taker(t, leaky, 0)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, err := tk.Take(ctx, mete.Request{}, false, nil); !errors.Is(err, gone) {
			t.Errorf("got error %v, want %v", err, gone)
		}
		if p, err := lim.Peek(t.Context(), mete.Request{}); err != nil || p.Wait != 9*time.Second {
			t.Errorf("the next one would wait %v (%v), want 9s: the place was given back", p.Wait, err)
		}
	})
}

// A shadow queue delays no request.
func TestTake_ShadowQueue(t *testing.T) {
	const rules = `{"rules": [{"name": "shadow", "mode": "shadow", "limit_keys": [], "algorithm": "leaky_bucket",
		"algorithm_config": {"rate": "1/10s", "queue": 2}}, {"name": "free", "limit_keys": [], "group": "other",
		"algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 10}}]}`
	synctest.Test(t, func(t *testing.T) {
		_, tk := taker(t, rules, 0)
		begin := time.Now()
		for range 5 {
			if d, err := tk.Take(t.Context(), mete.Request{}, false, nil); err != nil || !d.Allowed || d.Wait != 0 || time.Since(begin) != 0 {
				t.Fatalf("got %+v (%v) after %v, want it allowed at once", d, err, time.Since(begin))
			}
		}
	})
}

// A policy that gets a queue later has one.
func TestTake_NewPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, tk := taker(t, `{"name": "free", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 10}}`, 0)
		m, err := policy.Load([]byte(leaky), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := lim.SetPolicy(m); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 2 {
			if d, err := tk.Take(t.Context(), mete.Request{}, false, nil); err != nil || !d.Allowed {
				t.Fatalf("got %+v (%v)", d, err)
			}
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("two requests took %v, want 10s", took)
		}
	})
}

// slowed delays requests by 2s while half of it or more is used.
const slowed = `{"name": "slowed", "limit_keys": [], "algorithm_config": {"rate": "1/10s", "burst": 10,
	"staged_actions": [{"threshold": 50, "action": "throttle", "delay": "2s"}]}}`

// A request with too long a stage delay is denied at once with the reason of its limit. It is admitted without
// delay after its RetryAfter, and not earlier.
func TestTake_StageTooLong(t *testing.T) {
	for name, tt := range map[string]struct{ most, timeout time.Duration }{
		"longer than the most": {most: time.Second},
		"past the deadline":    {timeout: time.Second},
		"at the deadline":      {timeout: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, tk := taker(t, slowed, tt.most)
				if _, err := lim.Take(t.Context(), mete.Request{Cost: 4}); err != nil {
					t.Fatal(err)
				}
				ask := func() mete.Decision {
					ctx, cancel := t.Context(), func() {}
					if tt.timeout > 0 {
						ctx, cancel = context.WithTimeout(ctx, tt.timeout)
					}
					defer cancel()
					begin := time.Now()
					d, err := tk.Take(ctx, mete.Request{}, false, nil)
					if took := time.Since(begin); err != nil || took != 0 {
						t.Errorf("got %+v (%v) after %v", d, err, took)
					}
					return d
				}
				const after = 10*time.Second + 10*time.Millisecond // until less than half is used, the request's token with it
				d := ask()
				if s := d.Limits()[0]; d.Allowed || d.RetryAfter != after || d.Rule != "slowed" || d.Reason != "token_bucket_exceeded" || s.Allowed || s.RetryAfter != after {
					t.Errorf("got %+v, want a denial for %v", d, after)
				}
				time.Sleep(d.RetryAfter - time.Microsecond)
				if d := ask(); d.Allowed {
					t.Errorf("a microsecond earlier: got %+v", d)
				}
				time.Sleep(time.Microsecond)
				if d := ask(); !d.Allowed {
					t.Errorf("after that: got %+v", d)
				}
			})
		})
	}
}

// A stage that is always too long denies for good.
func TestTake_StageAlwaysTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tk := taker(t, slowed, time.Second)
		d, err := tk.Take(t.Context(), mete.Request{Cost: 5}, false, nil)
		if err != nil || d.Allowed || d.RetryAfter != bucket.Never || d.Reason != "token_bucket_exceeded" {
			t.Errorf("got %+v (%v), want a denial for good", d, err)
		}
	})
}
