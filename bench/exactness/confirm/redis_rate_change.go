// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// redisRateChange spends 10 per minute and then asks with 10 per second. The stored arrival time lies a minute ahead, whatever
// the new rate.
func redisRateChange(ctx context.Context, addr string) error {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	key := fmt.Sprint("confirm:", time.Now().UnixNano())
	l := redis_rate.NewLimiter(client)
	if _, err := l.AllowN(ctx, key, redis_rate.PerMinute(10), 10); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // 20 tokens at the new rate
	result, err := l.Allow(ctx, key, redis_rate.PerSecond(10))
	if err != nil {
		return err
	}
	fmt.Printf("2 s later with 10 per second: allowed=%d retry after %s\n", result.Allowed, result.RetryAfter.Round(time.Millisecond))
	return nil
}
