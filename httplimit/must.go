// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/memstore"
)

// PerAddress returns a middleware that limits each client address in the memory of this process:
//
//	mux.Handle("/search", httplimit.PerAddress("100/1m", 20).Wrap(search))
//
// Each address gets 100 requests per minute with bursts of up to 20. rate has the syntax of [Limit.Rate]; burst
// is in whole tokens. Each call creates separate buckets, at most [memstore.DefaultMaxKeys]. The address comes
// from the connection: behind a proxy, use [New] with [Config.TrustedProxies].
//
// PerAddress is for limits that are constants in the program. Like [regexp.MustCompile], it panics if rate or
// burst is invalid. For limits from outside the program, use New, which returns an error.
func PerAddress(rate string, burst int) *Middleware {
	limiter, err := newMemoryLimiter()
	if err != nil {
		panic(fmt.Errorf("httplimit: per address: %w", err)) // the default settings are always valid
	}
	m, err := New(limiter, Config{}, Limit{Name: "per-address", Rate: rate, Burst: burst, Key: ByAddress()})
	if err != nil {
		panic(err)
	}
	return m
}

// Must returns a middleware with one limit over the store of limiter:
//
//	api := httplimit.Must(limiter, "api", "100/1m", 20, httplimit.ByHeader("X-API-Key", httplimit.MissingDeny))
//	mux.Handle("/search", api.Wrap(search))
//
// name, rate, burst and key are fields of [Limit]. If limiter has a policy, the policy also applies. Must is for
// limits that are constants in the program: like [regexp.MustCompile], it panics if an argument is invalid. [New]
// returns the error instead.
func Must(limiter *mete.Limiter, name, rate string, burst int, key Key) *Middleware {
	m, err := New(limiter, Config{}, Limit{Name: name, Rate: rate, Burst: burst, Key: key})
	if err != nil {
		panic(err)
	}
	return m
}

func newMemoryLimiter() (*mete.Limiter, error) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	return mete.New(store, nil, mete.Config{})
}
