// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// around is a store around another one.
type around struct{ mete.Store }

func (a around) Unwrap() mete.Store { return a.Store }

// A stranger is a store without a secret.
type stranger struct{ mete.Store }

// A keeper is a store that counts the reads of its secret.
type keeper struct {
	mete.Store
	secret string
	asked  int
	err    error
}

func (k *keeper) DeriveKey(_ context.Context, purpose string) (key [32]byte, err error) {
	k.asked++
	copy(key[:], k.secret+purpose)
	return key, k.err
}

const (
	byAPIKey  = `{"rules": [{"name": "r", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "3/1h", "burst": 3}}]}`
	byUser    = `{"rules": [{"name": "r", "limit_keys": ["user"], "algorithm_config": {"rate": "3/1h", "burst": 3}}]}`
	byAddress = `{"rules": [{"name": "r", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "3/1h", "burst": 3}}]}`
)

// Without a policy key, all limiters over a store use the same bucket keys, derived from the store's secret.
func TestHashKey_IsTheStores(t *testing.T) {
	keys := func(store mete.Store) (all []string) {
		t.Helper()
		l, err := mete.New(store, load(t, byAPIKey), mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rules := range []string{byAPIKey, byUser} { // secret by its name, and long
			if err := l.SetPolicy(load(t, rules)); err != nil {
				t.Fatal(err)
			}
			attrs := mete.Attrs{"header:x-api-key": "k1", "user": strings.Repeat("u", 100)}
			matches, _ := l.Policy().Match(nil, attrs, 0, 0)
			all = append(all, matches[0].Key)
		}
		return all
	}
	naive := storetest.NewModel(storetest.NewClock().Now)
	a, b := &keeper{Store: naive, secret: "a"}, &keeper{Store: naive, secret: "b"}
	of, ofA, ofB := keys(a), keys(around{around{a}}), keys(b)
	for i := range of {
		if !strings.Contains(of[i], "=~") {
			t.Fatalf("key %q has no hash", of[i])
		}
		if of[i] != ofA[i] {
			t.Errorf("keys %q and %q of one store", of[i], ofA[i])
		}
		if of[i] == ofB[i] {
			t.Errorf("two stores with different secrets have the key %q", of[i])
		}
	}
	if a.asked != 2 {
		t.Errorf("two limiters asked for the secret %d times, want once each", a.asked)
	}
}

func TestHashKey_RefusesARandomOne(t *testing.T) {
	unknown := stranger{storetest.NewModel(storetest.NewClock().Now)}
	for _, rules := range []string{byAPIKey, byUser} {
		_, err := mete.New(unknown, load(t, rules), mete.Config{})
		if err == nil || !strings.Contains(err.Error(), "policy.Options.HashKey") || !strings.Contains(err.Error(), "mete_test.stranger") {
			t.Errorf("New: error %v; want one that names the store and the remedy", err)
		}
	}
	l, err := mete.New(unknown, load(t, byAddress), mete.Config{})
	if err != nil {
		t.Fatalf("New with a policy that hashes nothing: %v", err)
	}
	in := l.Policy()
	if err := l.SetPolicy(load(t, byAPIKey)); err == nil || !strings.Contains(err.Error(), "policy.Options.HashKey") || l.Policy() != in {
		t.Errorf("SetPolicy: error %v; want one that names the remedy, and the policy unchanged", err)
	}
	m, err := policy.Load([]byte(byAPIKey), policy.Options{HashKey: []byte("of all processes")})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetPolicy(m); err != nil || l.Policy() != m {
		t.Errorf("SetPolicy with a key: error %v, or another policy", err)
	}
	next, err := m.WithOverrides(nil, bucket.Instant(0).Time())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetPolicy(next); err != nil {
		t.Errorf("SetPolicy with overrides, and a key: %v", err)
	}
}

// After a store error, the next call reads the secret again.
func TestHashKey_StoreFails(t *testing.T) {
	away := errors.New("away")
	store := &keeper{Store: storetest.NewModel(storetest.NewClock().Now), err: away}
	if _, err := mete.New(store, load(t, byAPIKey), mete.Config{}); !errors.Is(err, away) || !strings.Contains(err.Error(), "HashKey") {
		t.Errorf("New: error %v", err)
	}
	l, err := mete.New(store, load(t, byAddress), mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetPolicy(load(t, byAPIKey)); !errors.Is(err, away) {
		t.Errorf("SetPolicy: error %v", err)
	}
	store.err = nil
	if err := l.SetPolicy(load(t, byAPIKey)); err != nil {
		t.Errorf("SetPolicy, when the store answers: %v", err)
	}
}

// Overrides, tests and expiry of a policy survive the addition of its key.
func TestHashKey_KeepsThePolicy(t *testing.T) {
	m := load(t, `{"rules": [{"name": "r", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "3/1h", "burst": 3}}],
		"overrides": [{"id": "o", "author": "me", "action": "block", "match": {"method": "DELETE"}, "reason": "why", "expires_at": "2999-01-01T00:00:00Z"}]}`)
	l, err := mete.New(storetest.NewModel(storetest.NewClock().Now), m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	in := l.Policy()
	if in == m || in.NeedsHashKey() || !in.DependsOnTime() || len(in.Overrides()) != 1 || len(in.Rules()) != 1 || len(in.Attributes()) != len(m.Attributes()) {
		t.Errorf("the policy in force is not the one given, with a key: %+v", in)
	}
	d, err := l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"method": "DELETE", "header:x-api-key": "k"}})
	if err != nil || d.Allowed || d.Override == nil {
		t.Errorf("a blocked request: %+v, error %v", d, err)
	}
}
