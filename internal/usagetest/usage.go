// SPDX-License-Identifier: Apache-2.0

// Package usagetest compares the settlement of a hold by the usage of a language model with the settlement of a response. All
// stores run it.
package usagetest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// source has a limit of requests, of a header's number, of tokens with several weights, and of money.
const source = `{
	"prices": {"version": "1", "models": {"small": {"input": 250.5, "cached": 125, "output": 1000}, "big*": {"input": 3000, "cache_write": 3750, "output": 15000, "reasoning": 20000}}},
	"rules": [
		{"name": "requests", "group": "requests", "limit_keys": ["header:key"], "deadline": "10s", "rate": "1000/1000h"},
		{"name": "named", "group": "named", "limit_keys": ["header:key"], "deadline": "10s", "rate": "100000/1000h", "cost_source": "header:units"},
		{"name": "tokens", "group": "tokens", "limit_keys": ["header:key"], "deadline": "10s", "rate": "90000000/1000h", "cost_source": "ai:tokens"},
		{"name": "weighted", "group": "weighted", "limit_keys": ["header:key"], "deadline": "10s", "rate": "90000000/1000h", "cost_source": "ai:tokens", "min_cost": 40, "max_cost": 9000,
			"weights": {"input": 0.333, "cached": 0.1, "cache_write": 1.25, "output": 4, "reasoning": 3.5}},
		{"name": "money", "group": "money", "limit_keys": ["header:key"], "deadline": "10s", "rate": "90000000/1000h", "cost_source": "ai:money"}
	]
}`

// Run takes random requests twice: one is settled by its response, as in the gateway, and the other one by its usage,
// with another limiter. All buckets must have the same tokens.
func Run(t *testing.T, open func(t *testing.T, now func() bucket.Instant) mete.Store) {
	var clock atomic.Int64
	clock.Store(1_700_000_000_000_000)
	s := open(t, func() bucket.Instant { return bucket.Instant(clock.Load()) })
	var limiters [2]*mete.Limiter
	for i := range limiters {
		m, err := policy.Load([]byte(source), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if limiters[i], err = mete.New(s, m, mete.Config{Scale: func(c bucket.Tokens) bucket.Tokens { return c + c/2 }}); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(testseed.PCG(1, 9))
	for i := range 40 {
		attributes := func(key string) mete.Attrs {
			return mete.Attrs{"header:key": key, "header:units": strconv.Itoa(1 + r.IntN(9)), "ai:model": []string{"small", "big-1", "unknown", ""}[i%4],
				"ai:prompt_tokens": strconv.Itoa(100 * i), "ai:max_tokens": strconv.Itoa(1000 - 20*i)}
		}
		usage := policy.TokenUsage{Input: r.Int64N(3000), Cached: r.Int64N(1000), CacheWrite: r.Int64N(1000), Output: r.Int64N(2000), Reasoning: r.Int64N(500)}
		by, of := attributes(fmt.Sprintf("{x}response%d", i)), attributes(fmt.Sprintf("{x}usage%d", i))
		of["header:units"] = by["header:units"]
		reservation, err := limiters[0].Reserve(t.Context(), mete.Request{Attributes: by})
		if err != nil || !reservation.Allowed {
			t.Fatalf("reserve %v: %+v, error %v", by, reservation, err)
		}
		h, err := limiters[0].Hold(t.Context(), mete.Request{Attributes: of}, mete.HoldOptions{})
		if err != nil || !h.Allowed {
			t.Fatalf("hold %v: %+v, error %v", of, h, err)
		}
		clock.Add(r.Int64N(1_000_000))
		if err := reservation.Finish(t.Context(), policy.Response{Status: http.StatusOK, Model: by["ai:model"], Usage: &usage, Ended: true}); err != nil {
			t.Fatal(err)
		}
		for again := range 2 { // the second call changes nothing
			status, err := limiters[1].SettleUsage(t.Context(), h.ID, usage, "")
			if err != nil || status.State != store.HoldSettled || status.Settled != (again == 0) || status.Actual != store.Keep {
				t.Fatalf("settle %+v: %+v, error %v", usage, status, err)
			}
		}
		want, err := limiters[0].Peek(t.Context(), mete.Request{Attributes: by})
		if err != nil {
			t.Fatal(err)
		}
		got, err := limiters[1].Peek(t.Context(), mete.Request{Attributes: of})
		if err != nil {
			t.Fatal(err)
		}
		for j := range want.Limits() {
			if w, g := want.Limits()[j], got.Limits()[j]; w.Remaining() != g.Remaining() {
				t.Errorf("usage %+v of %q: %s has %v, want %v", usage, by["ai:model"], w.Rule.Name, g.Remaining(), w.Remaining())
			}
		}
	}
}
