// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

const (
	// connectPatience is how long a server that starts waits for its store: for
	// both to be started together.
	connectPatience = 10 * time.Second
	connectInterval = 250 * time.Millisecond
)

// A node is a store that is elsewhere, with connections of its own.
type node interface {
	mete.Store
	store.Pinger
	Nodes() int
	DeriveKey(ctx context.Context, purpose string) ([sha256.Size]byte, error)
	Close() error
}

// openNode connects to the store that the settings name. It tries once.
func openNode(ctx context.Context, u *storeurl.URL) (node, error) {
	if u.Scheme == storeurl.Postgres {
		return pgstore.Connect(ctx, u.Postgres.Options, u.Postgres.Config)
	}
	return redisstore.Connect(ctx, u.Redis.Options, u.Redis.Config)
}

// connect tries for a while, as long as nothing answers.
func (s *Server) connect(ctx context.Context, u *storeurl.URL) (node, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	ticker := time.NewTicker(connectInterval)
	defer ticker.Stop()
	complain := s.complain("the store does not answer; trying again")
	var before error
	for {
		node, err := openNode(ctx, u)
		if before != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
			err = before // what it was that did not answer
		}
		before = err
		if err == nil || !errors.Is(err, store.ErrUnavailable) {
			return node, err
		}
		complain(err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}
