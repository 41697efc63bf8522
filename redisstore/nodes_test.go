// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// beat is short to keep the tests short. A node misses three of them only if it is gone, even on a slow machine.
const beat = 100 * time.Millisecond

// join joins a node that leaves when the test ends, unless it has died.
func join(t *testing.T, addr, prefix, id string) *redisstore.Presence {
	t.Helper()
	client := connect(t, addr)
	p, err := redisstore.Join(t.Context(), client, prefix, id, beat)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func leave(t *testing.T, p *redisstore.Presence) {
	t.Helper()
	if err := p.Leave(context.Background()); err != nil {
		t.Error(err)
	}
}

// await waits until all nodes count this many.
func await(t *testing.T, want int, nodes ...*redisstore.Presence) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		for i, p := range nodes {
			if got := p.Nodes(); got != want {
				return fmt.Errorf("node %d counts %d nodes, want %d", i, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestJoin(t *testing.T) {
	r := proctest.StartRedis(t)
	proxy := proctest.StartProxy(t, r.Addr)
	a, b := join(t, r.Addr, "p:", "a"), join(t, r.Addr, "p:", "b")
	other := join(t, r.Addr, "q:", "c")
	dying := join(t, proxy.Addr, "p:", "d")
	await(t, 3, a, b, dying)
	await(t, 1, other)

	proxy.Blackhole(true) // it stops without leaving
	await(t, 2, a, b)
	if got := dying.Nodes(); got != 3 {
		t.Errorf("who is cut off counts %d nodes, want 3 as before", got)
	}
	proxy.Blackhole(false)
	await(t, 3, a, b, dying)

	leave(t, dying)
	leave(t, b)
	await(t, 1, a)
	leave(t, a)
	leave(t, other)
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	err := proctest.Poll(ctx, func(context.Context) error {
		if left, err := r.Do("DBSIZE"); err != nil || left != "0" {
			return fmt.Errorf("%s keys are left, %w", left, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestJoin_RedisForgets proves that a node remembers the count after Redis has lost the other nodes.
func TestJoin_RedisForgets(t *testing.T) {
	r := proctest.StartRedis(t)
	a, b := join(t, r.Addr, "", "a"), join(t, r.Addr, "", "b")
	await(t, 2, a, b)
	if _, err := r.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	await(t, 2, a, b)
	leave(t, a)
	leave(t, b)
}

func TestJoin_Fails(t *testing.T) {
	client := connect(t, proctest.StartRedis(t).Addr)
	if _, err := redisstore.Join(t.Context(), client, "", "a", time.Microsecond); err == nil {
		t.Error("an interval of 1µs: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := redisstore.Join(ctx, client, "", "a", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of ctx: %v, want %v", err, context.Canceled)
	}
}
