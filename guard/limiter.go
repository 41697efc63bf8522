// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/recovery"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// denyFor is how long a denial is cached. Tokens that another process refunds are unavailable for at most that
// long.
const denyFor = time.Second

// A Node is one process's view of a shared store.
type Node interface {
	mete.Store
	io.Closer
	store.KeyDeriver
	store.KeyChecker

	// Nodes returns the number of processes that share the store, including this one.
	Nodes() int
}

// NewLimiter returns a limiter over node that decides by m, behind a circuit breaker. It is the common part of
// redisstore.NewLimiter, pgstore.NewLimiter, and similar stores. The limiter owns node: [mete.Limiter.Close]
// first charges node for tokens that were spent during an outage, for at most 3 seconds. After an error, the
// caller still owns node.
//
// The zero Config is valid. By default, Local is a memstore, Nodes counts the processes of node, and DenyFor is a
// second. A nil m is an error that wraps [policy.ErrRequired]. NewLimiter reads the hash key from node until ctx
// ends. [mete.New] documents the other errors.
func NewLimiter(ctx context.Context, node Node, m *policy.Matcher, config mete.Config) (*mete.Limiter, error) {
	if m == nil {
		return nil, fmt.Errorf("%w; to charge without a policy, call mete.New", policy.ErrRequired)
	}
	loop := recovery.New()
	guarded, err := New(node, Config{OnChange: func(_, to State) {
		if to == StateClosed {
			loop.Wake()
		}
	}})
	if err != nil {
		return nil, err
	}
	if config.Local == nil {
		if config.Local, err = memstore.New(memstore.Config{}); err != nil {
			return nil, err
		}
	}
	if config.Nodes == nil {
		config.Nodes = node.Nodes
	}
	if config.DenyFor == 0 {
		config.DenyFor = denyFor
	}
	done := config.OnClose
	config.OnClose = func() error {
		err := loop.Close()
		if err != nil {
			err = fmt.Errorf("guard: close: tokens spent during an outage could not be charged: %w", err)
		}
		if err = errors.Join(err, node.Close()); done != nil {
			err = errors.Join(err, done())
		}
		return err
	}
	if m.NeedsHashKey() {
		key, err := node.DeriveKey(ctx, policy.HashPurpose)
		if err != nil {
			return nil, err
		}
		m = m.WithHashKey(key[:])
	}
	if err := node.CheckHashKey(ctx, m.HashKeyID()); err != nil {
		return nil, err
	}
	limiter, err := mete.New(guarded, m, config)
	if err != nil {
		return nil, err
	}
	loop.Start(limiter)
	return limiter, nil
}
