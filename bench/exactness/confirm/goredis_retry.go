// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// goRedisRetry takes one token through connections that break once, after Redis has run the script.
func goRedisRetry(ctx context.Context, addr string) error {
	var breakNext atomic.Bool
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return fragile{conn, &breakNext}, err
	}})
	defer client.Close()
	key := fmt.Sprint("confirm:", time.Now().UnixNano())
	l, limit := redis_rate.NewLimiter(client), redis_rate.PerMinute(10)
	if _, err := l.AllowN(ctx, key, limit, 0); err != nil { // connects and loads the script
		return err
	}
	breakNext.Store(true)
	result, err := l.Allow(ctx, key, limit)
	if err != nil {
		return err
	}
	fmt.Printf("one take: allowed=%d remaining=%d of 10\n", result.Allowed, result.Remaining)
	return nil
}

// A fragile connection loses an answer and breaks.
type fragile struct {
	net.Conn
	breakNext *atomic.Bool
}

func (f fragile) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if err == nil && f.breakNext.CompareAndSwap(true, false) {
		f.Close()
		return 0, net.ErrClosed
	}
	return n, err
}
