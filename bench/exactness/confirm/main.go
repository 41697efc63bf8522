// SPDX-License-Identifier: Apache-2.0

// Command confirm repeats findings of the comparison with as little code as possible: one file each, without the judge and
// the worker processes.
//
//	go run ./confirm FINDING [REDIS]
//
// REDIS is host:port, 127.0.0.1:6379 by default. Without arguments, the command lists the findings.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
)

// A finding prints what it sees. It may use the Redis at the address.
type finding struct {
	about string
	run   func(ctx context.Context, redis string) error
}

var findings = map[string]finding{
	"ulule-reset":       {"ulule/limiter: a client that waits until Reset is denied again", ululeReset},
	"redis_rate-change": {"redis_rate: a client stays locked out after its limit was raised", redisRateChange},
	"throttled-change":  {"throttled: a client stays locked out after its limit was raised", throttledChange},
	"tollbooth-change":  {"tollbooth: a changed limit does not affect known keys", tollboothChange},
	"x-time-rate-clock": {"x/time/rate: AllowN with two clocks refills the same second again and again", xTimeClock},
	"go-redis-retry":    {"redis_rate: a lost answer is charged twice, because go-redis repeats the script", goRedisRetry},
}

func main() {
	if len(os.Args) < 2 || findings[os.Args[1]].run == nil {
		for _, name := range slices.Sorted(maps.Keys(findings)) {
			fmt.Printf("%-18s %s\n", name, findings[name].about)
		}
		os.Exit(2)
	}
	redis := "127.0.0.1:6379"
	if len(os.Args) > 2 {
		redis = os.Args[2]
	}
	if err := findings[os.Args[1]].run(context.Background(), redis); err != nil {
		fmt.Fprintln(os.Stderr, "confirm:", err)
		os.Exit(1)
	}
}
