// SPDX-License-Identifier: Apache-2.0

// Package pools closes connection pools, and detects errors of unavailable servers.
package pools

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CloseTimeout is the longest that [Close] waits.
const CloseTimeout = time.Second

// Close closes a pool. It does not wait long for a hanging server, for which pgx waits 15 s.
func Close(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(CloseTimeout):
	}
}
