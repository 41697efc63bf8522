// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/keyed"
	"github.com/metehq/mete/policy"
)

// logins returns a limiter of 3 per key over the store of l.
func logins(t *testing.T, l *mete.Limiter) *keyed.Shared {
	t.Helper()
	limit, err := bucket.NewLimit(3*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s, err := keyed.NewShared(l.Store(), limit, keyed.SharedConfig{Name: "logins", Deadline: policy.MaxDeadline})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestKeyed_Shared proves that two processes share the buckets and the secret of a keyed limiter.
func TestKeyed_Shared(t *testing.T) {
	t.Parallel()
	url := shared(t)
	first, second := logins(t, newLimiter(t, url, "")), logins(t, newLimiter(t, url, ""))
	admitted := 0
	for range 3 {
		for _, s := range []*keyed.Shared{first, second} {
			allowed, err := s.Allow(t.Context(), "192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			if allowed {
				admitted++
			}
		}
	}
	if admitted != 3 {
		t.Errorf("two processes admitted %d, want the limit of 3", admitted)
	}
}

// TestKeyed_WithoutTheStore uses a closed limiter in place of an outage.
func TestKeyed_WithoutTheStore(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, shared(t), "")
	s := logins(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	allowed, err := s.Allow(t.Context(), "192.0.2.1")
	if _, failed := errors.AsType[*mete.StoreError](err); allowed || !failed {
		t.Errorf("Allow = %t, %v, want false and a mete.StoreError", allowed, err)
	}
}
