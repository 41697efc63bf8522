// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A brokenStore always fails.
type brokenStore struct{ err error }

func (s brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, s.err
}
func (s brokenStore) DeriveKey(context.Context, string) (key [32]byte, err error) { return }
func (s brokenStore) Refund(context.Context, []mete.Refund, string) error         { return s.err }
func (s brokenStore) Reset(context.Context, []string) error                       { return s.err }

// G8: a store failure is never reported as an exceeded limit.
func TestTake_StoreFails(t *testing.T) {
	broken := errors.New("connection refused")
	store := brokenStore{&mete.StoreError{Op: "take", Store: "test", Spent: mete.NotSpent, Err: broken}}
	for _, tc := range []struct {
		name, rules  string
		allowed      bool
		rule, reason string
	}{
		{"open", `{"name": "a", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}`, true, "", ""},
		{"closed", `{"name": "a", "limit_keys": [], "on_store_error": "closed", "algorithm_config": {"rps": 1, "burst": 1}}`, false, "a", mete.ReasonStoreError},
		{"closed wins", `{"name": "a", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}},
			{"name": "b", "limit_keys": ["header:x"], "on_store_error": "closed", "algorithm_config": {"rps": 1, "burst": 1}}`, false, "b", mete.ReasonStoreError},
		{"shadow has no say", `{"name": "a", "limit_keys": [], "mode": "shadow", "on_store_error": "closed", "algorithm_config": {"rps": 1, "burst": 1}}`, true, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := mete.New(store, load(t, `{"rules": [`+tc.rules+`]}`), mete.Config{})
			if err != nil {
				t.Fatal(err)
			}
			d, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x": "1"}})
			if err != nil || d.Allowed != tc.allowed || d.Rule != tc.rule || d.Reason != tc.reason {
				t.Errorf("%+v, error %v; want allowed %v, rule %q, reason %q", d, err, tc.allowed, tc.rule, tc.reason)
			}
			if wantDegraded := tc.name != "shadow has no say"; d.Degraded != wantDegraded || wantDegraded && !errors.Is(d.Err, broken) {
				t.Errorf("degraded %v, err %v", d.Degraded, d.Err)
			}
			want := time.Duration(0)
			if !tc.allowed {
				want = time.Second // an estimate, because the real wait is unknown
			}
			if d.RetryAfter != want {
				t.Errorf("retry after %v, want %v", d.RetryAfter, want)
			}
			if _, err := l.Wait(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x": "1"}}); (err == nil) != tc.allowed ||
				!tc.allowed && !errors.Is(err, mete.ErrRefused) {
				t.Errorf("wait: error %v", err)
			}
		})
	}
}

func TestTake_CallerGoneIsNoStoreError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := mete.New(cancellingStore{cancel: cancel}, load(t, nested), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := l.Take(ctx, mete.Request{}); !errors.Is(err, context.Canceled) || d.Allowed {
		t.Errorf("%+v, error %v; want context.Canceled", d, err)
	}
}

// A cancellingStore fails because its caller's context ends during the call.
type cancellingStore struct {
	brokenStore
	cancel func()
}

func (s cancellingStore) Take(ctx context.Context, _ []bucket.Snapshot, _ []store.Charge, _ mete.Mode) ([]bucket.Snapshot, bool, error) {
	s.cancel()
	return nil, false, ctx.Err()
}

func TestSpent(t *testing.T) {
	not := &mete.StoreError{Op: "take", Store: "test", Spent: mete.NotSpent, Err: errors.New("dial")}
	maybe := &mete.StoreError{Op: "take", Store: "test", Spent: mete.MaybeSpent, Err: errors.New("read")}
	for _, tc := range []struct {
		err  error
		want store.Spending
	}{
		{not, mete.NotSpent},
		{errors.Join(errors.New("x"), not), mete.NotSpent},
		{maybe, mete.MaybeSpent},
		{errors.New("unknown"), mete.MaybeSpent},
	} {
		if got := mete.Spent(tc.err); got != tc.want {
			t.Errorf("Spent(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
	if got, want := not.Error(), "test: take: dial"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
}
