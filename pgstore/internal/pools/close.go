// SPDX-License-Identifier: Apache-2.0

// Package pools ends pools of connections.
package pools

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Patience is how long [Close] waits at most.
const Patience = time.Second

// Close closes a pool, and does not wait long for a server that hangs, for which pgx
// does for 15 s.
func Close(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(Patience):
	}
}
