// SPDX-License-Identifier: Apache-2.0

package topkeys_test

import (
	"context"
	"fmt"
	"log"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

// A service lists the keys with the most denials, and the keys near their limit.
func Example() {
	rules, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "1/1h", "burst": 5}}]}`), policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	now := func() bucket.Instant { return 60_000_000 } // a program uses bucket.At(start.Add(time.Since(start)))
	top, err := topkeys.New(topkeys.Config{Counters: 50}, now())
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := mete.New(store, rules, mete.Config{
		OnDenial:    func(_ context.Context, d *mete.Denial) { top.OnDenial(now(), d) },
		OnNearLimit: func(_ context.Context, d *mete.Denial) { top.OnNearLimit(now(), d) },
	})
	if err != nil {
		log.Fatal(err)
	}
	for address, requests := range map[string]int{"192.0.2.1": 1000, "192.0.2.2": 7, "192.0.2.3": 4} {
		for range requests {
			if _, err := limiter.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"ip:address": address}}); err != nil {
				log.Fatal(err)
			}
		}
	}
	for _, kind := range []topkeys.Kind{topkeys.KindDenied, topkeys.KindNear} {
		list := top.Top(now(), "free", kind, 0)
		fmt.Printf("%v: %d records\n", kind, list.Total)
		for _, k := range list.Keys {
			fmt.Printf("  %4d (at most %d too many)  %s\n", k.Count, k.Error, k.Key)
		}
	}
	// Output:
	// denied: 997 records
	//    995 (at most 0 too many)  free:ip=192.0.2.1
	//      2 (at most 0 too many)  free:ip=192.0.2.2
	// near: 5 records
	//      2 (at most 0 too many)  free:ip=192.0.2.1
	//      2 (at most 0 too many)  free:ip=192.0.2.2
	//      1 (at most 0 too many)  free:ip=192.0.2.3
}
