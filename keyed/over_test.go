// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// A spy is a store that fails on request, and records its keys.
type spy struct {
	*memstore.Store
	err  error
	keys []string
}

func (s *spy) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	for _, c := range charges {
		s.keys = append(s.keys, c.Key)
	}
	if s.err != nil {
		return dst, false, s.err
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

func newSpy(t *testing.T) *spy {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &spy{Store: store}
}

func over(t *testing.T, store mete.Store, rate string, burst int) *keyed.Shared {
	t.Helper()
	s, err := keyed.Over(store, rate, burst)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func allows(t *testing.T, s *keyed.Shared, key string, want bool) {
	t.Helper()
	if got, err := s.Allow(t.Context(), key); got != want || err != nil {
		t.Errorf("Allow(%.40q) = %t, %v, want %t", key, got, err, want)
	}
}

// The methods decide like the methods of a limiter in memory.
func TestOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s := t.Context(), over(t, newSpy(t), "1/s", 3)
		for i, tt := range []struct {
			what      string
			do        func() (bucket.Snapshot, error)
			allowed   bool
			remaining int64
		}{
			{"Peek 3", func() (bucket.Snapshot, error) { return s.Peek(ctx, "a", 3) }, true, 3},
			{"Take 2", func() (bucket.Snapshot, error) { return s.Take(ctx, "a", 2) }, true, 1},
			{"Take 2", func() (bucket.Snapshot, error) { return s.Take(ctx, "a", 2) }, false, 1},
			{"TakeUpTo 5", func() (bucket.Snapshot, error) { return s.TakeUpTo(ctx, "a", 5) }, true, 0},
			{"Take 1 of b", func() (bucket.Snapshot, error) { return s.Take(ctx, "b", 1) }, true, 2},
		} {
			got, err := tt.do()
			if err != nil || got.Allowed != tt.allowed || got.Remaining().Whole() != tt.remaining {
				t.Errorf("step %d, %s: allowed %t, remaining %v, %v; want %t, %d", i, tt.what, got.Allowed, got.Remaining(), err, tt.allowed, tt.remaining)
			}
		}
		began := time.Now()
		if err := s.Wait(ctx, "a", 2); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("Wait for 2 tokens: %v after %v, want nil after 2s", err, time.Since(began))
		}
		if err := s.Refund(ctx, "a", math.MaxInt); err != nil {
			t.Errorf("Refund: %v", err)
		}
		r, err := s.Reserve(ctx, "a", 3, 0)
		if err != nil || !r.Allowed {
			t.Fatalf("Reserve: %+v, %v", r, err)
		}
		allows(t, s, "a", false)
		if err := r.Cancel(ctx); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		allows(t, s, "a", true)
		if err := s.Reset(ctx, "a"); err != nil {
			t.Errorf("Reset: %v", err)
		}
		if got, err := s.Peek(ctx, "a", 3); !got.Allowed || err != nil {
			t.Errorf("Peek(a, 3) after Reset: %+v, %v", got, err)
		}
	})
}

// A store error is never an admission.
func TestOver_WithoutTheStore(t *testing.T) {
	kept := newSpy(t)
	s := over(t, kept, "10/1m", 20)
	kept.err = &mete.StoreError{Op: "take", Store: "test", Spent: mete.NotSpent, Err: store.ErrUnavailable}
	ctx := t.Context()
	for name, call := range map[string]func() (bool, error){
		"Allow":    func() (bool, error) { return s.Allow(ctx, "a") },
		"Take":     func() (bool, error) { snap, err := s.Take(ctx, "a", 1); return snap.Allowed, err },
		"TakeUpTo": func() (bool, error) { snap, err := s.TakeUpTo(ctx, "a", 1); return snap.Allowed, err },
		"Peek":     func() (bool, error) { snap, err := s.Peek(ctx, "a", 1); return snap.Allowed, err },
		"Wait":     func() (bool, error) { return false, s.Wait(ctx, "a", 1) },
		"Reserve":  func() (bool, error) { r, err := s.Reserve(ctx, "a", 1, 0); return r != nil, err },
	} {
		if allowed, err := call(); allowed || !errors.Is(err, store.ErrUnavailable) || mete.Spent(err) != mete.NotSpent {
			t.Errorf("%s: %t, %v; want false, and the error of the store", name, allowed, err)
		}
	}
}

func TestOver_HashesKeys(t *testing.T) {
	store := newSpy(t)
	s := over(t, store, "10/1m", 20)
	for _, key := range []string{"secret", "", strings.Repeat("x", 5000), "a:b|c{d}\x00"} {
		allows(t, s, key, true)
	}
	for _, key := range store.keys {
		if !strings.HasPrefix(key, "keyed:20000+1/6000:~") || len(key) != len("keyed:20000+1/6000:~")+22 || strings.Contains(key, "secret") {
			t.Errorf("the store sees %q", key)
		}
	}
}

// Limiters of one or several processes share buckets only by name.
func TestNewShared_Names(t *testing.T) {
	store := newSpy(t)
	limit, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) *keyed.Shared {
		s, err := keyed.NewShared(store, limit, keyed.SharedConfig{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for i, tt := range []struct {
		limiter *keyed.Shared
		want    bool
	}{
		{named("logins"), true}, {named("logins"), false}, {named("uploads"), true},
		{named(""), true}, {over(t, store, "1/1h", 1), false}, {over(t, store, "1/1h", 2), true},
	} {
		if got, err := tt.limiter.Allow(t.Context(), "a"); got != tt.want || err != nil {
			t.Errorf("limiter %d: %t, %v, want %t", i, got, err, tt.want)
		}
	}
}

func TestOver_Errors(t *testing.T) {
	store := newSpy(t)
	for _, tt := range []struct {
		store mete.Store
		rate  string
		burst int
		is    error
		says  []string
	}{
		{nil, "10/1m", 20, keyed.ErrStore, []string{"redisstore.NewLimiter"}},
		{store, "10/1x", 20, bucket.ErrRate, []string{`"10/1x"`, "valid rates are 10/1m"}},
		{store, "10", 20, bucket.ErrRate, []string{`"10"`, "valid rates are 10/1m"}},
		{store, "", 20, bucket.ErrRate, []string{`""`}},
		{store, "0/1m", 20, bucket.ErrRate, []string{"must be above 0"}},
		{store, "10/1m", 0, keyed.ErrBurst, []string{"0: must be between 1 and 9007199254740"}},
		{store, "10/1m", -1, keyed.ErrBurst, []string{"-1"}},
		{store, "10/1m", math.MaxInt, keyed.ErrBurst, []string{"9223372036854775807"}},
		{store, "1/365d", math.MaxInt32, keyed.ErrBurst, []string{`"1/365d"`}},
	} {
		_, err := keyed.Over(tt.store, tt.rate, tt.burst)
		if !errors.Is(err, tt.is) {
			t.Errorf("Over(%T, %q, %d): %v, want one that wraps %v", tt.store, tt.rate, tt.burst, err, tt.is)
			continue
		}
		for _, text := range tt.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("Over(%T, %q, %d): %q lacks %q", tt.store, tt.rate, tt.burst, err, text)
			}
		}
	}
	if _, err := keyed.NewShared(store, bucket.Limit{}, keyed.SharedConfig{}); !errors.Is(err, bucket.ErrLimit) {
		t.Errorf("NewShared without a limit: %v", err)
	}
	limit, _ := bucket.NewLimit(bucket.Token, bucket.PerSecond(bucket.Token))
	for _, name := range []string{"Logins", "a b", "a:b", strings.Repeat("a", 65)} {
		if _, err := keyed.NewShared(store, limit, keyed.SharedConfig{Name: name}); !errors.Is(err, keyed.ErrName) {
			t.Errorf("NewShared with the name %q: %v", name, err)
		}
	}
	if _, err := over(t, store, "10/1m", 20).Take(t.Context(), "a", -1); !errors.Is(err, mete.ErrCost) {
		t.Errorf("Take(a, -1): %v", err)
	}
}

// A store without a secret would give each process separate buckets.
func TestOver_StoreWithoutASecret(t *testing.T) {
	_, err := keyed.Over(struct{ mete.Store }{newSpy(t)}, "10/1m", 20)
	if err == nil || !strings.Contains(err.Error(), "DeriveKey") {
		t.Errorf("error %v, want one that names DeriveKey", err)
	}
}
