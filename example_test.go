// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// Each API key gets a burst of 3 tokens, refilled at one per minute. All keys together get 100 per second.
func Example() {
	matcher, err := policy.Load([]byte(`{
		"rules": [
			{"name": "per key", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1m", "burst": 3}},
			{"name": "everyone", "limit_keys": [], "algorithm_config": {"rps": 100, "burst": 200}}
		]
	}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, matcher, mete.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		decision, err := limiter.Take(context.Background(), mete.Request{
			Attributes: mete.Attrs{"header:x-api-key": "k1"},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q: allowed %v, retry after %v\n", decision.Rule, decision.Allowed, decision.RetryAfter.Round(time.Minute))
	}
	// Output:
	// "per key": allowed true, retry after 0s
	// "per key": allowed true, retry after 0s
	// "per key": allowed true, retry after 0s
	// "per key": allowed false, retry after 1m0s
}

// The other examples have no policy: their requests contain the limits. These are 10 tokens, refilled at one per
// minute, and 100 tokens, refilled at ten per minute.
var (
	ctx   = context.Background()
	small = must(bucket.NewLimit(10*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Minute}))
	large = must(bucket.NewLimit(100*bucket.Token, bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Minute}))
	tenOf = func(key string) []mete.Charge {
		return []mete.Charge{{Key: key, Limit: small, Cost: 10}}
	}
	oneOf   = func(key string) []mete.Charge { return []mete.Charge{{Key: key, Limit: small, Cost: 1}} }
	withNew = func() *mete.Limiter { return must(mete.New(must(memstore.New(memstore.Config{})), nil, mete.Config{})) }
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A denial is not an error. It contains the wait until a retry succeeds.
func ExampleLimiter_Take() {
	limiter := withNew()
	for range 2 {
		decision, err := limiter.Take(ctx, mete.Request{Charges: tenOf("user:alice")})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(decision.Allowed, decision.Reason, decision.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true  0s
	// false token_bucket_exceeded 10m0s
}

// A message is charged to its sender and to all users together, or to neither.
func ExampleLimiter_Take_severalKeys() {
	limiter := withNew()
	send := func(sender string, recipients int) {
		cost := mete.Tokens(recipients)
		decision, err := limiter.Take(ctx, mete.Request{Charges: []mete.Charge{
			{Key: "sender:" + sender, Limit: small, Cost: cost},
			{Key: "everyone", Limit: large, Cost: cost},
		}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(decision.Allowed, "everyone has", decision.Limits()[1].Remaining().Whole())
	}
	send("alice", 8)
	send("alice", 8)
	send("bob", 8)
	// Output:
	// true everyone has 92
	// false everyone has 92
	// true everyone has 84
}

// A worker takes the available part of a batch.
func ExampleLimiter_TakeUpTo() {
	limiter := withNew()
	for range 3 {
		request := mete.Request{Charges: []mete.Charge{{Key: "mailer", Limit: small, Cost: 6}}}
		decision, err := limiter.TakeUpTo(ctx, request)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(decision.Allowed, decision.Taken)
	}
	// Output:
	// true 6
	// true 4
	// false 0
}

// Wait sleeps until the request is admitted, and returns at once if that is impossible.
func ExampleLimiter_Wait() {
	limiter := withNew()
	if _, err := limiter.Wait(ctx, mete.Request{Charges: tenOf("crawler")}); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := limiter.Wait(ctx, mete.Request{Charges: oneOf("crawler")})
	fmt.Println(errors.Is(err, mete.ErrDeadlineTooSoon))
	// Output: true
}

// The cost of a call to a language model is known only after its answer. The call also counts as one request.
func ExampleLimiter_Reserve() {
	limiter := withNew()
	request := mete.Request{Charges: []mete.Charge{
		{Key: "requests:alice", Limit: small, Cost: 1, Fixed: true},
		{Key: "tokens:alice", Limit: large, Cost: 50}, // estimated cost
	}}
	reservation, err := limiter.Reserve(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	if !reservation.Allowed {
		log.Fatal("come again in ", reservation.RetryAfter)
	}
	used := 20 * bucket.Token // actual cost
	if err := reservation.Settle(ctx, mete.TokensOf(used)); err != nil {
		log.Fatal(err)
	}
	decision, err := limiter.Peek(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	for _, limit := range decision.Limits() {
		fmt.Println(limit.Remaining().Whole())
	}
	// Output:
	// 9
	// 80
}

// Finished work is charged even without available tokens. The bucket is then in debt.
func ExampleLimiter_Charge() {
	limiter := withNew()
	if _, err := limiter.Take(ctx, mete.Request{Charges: tenOf("job:7")}); err != nil {
		log.Fatal(err)
	}
	if _, err := limiter.Charge(ctx, mete.Request{Charges: tenOf("job:7")}); err != nil {
		log.Fatal(err)
	}
	decision, err := limiter.Take(ctx, mete.Request{Charges: oneOf("job:7")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(decision.Allowed, decision.RetryAfter.Round(time.Minute))
	// Output: false 11m0s
}
