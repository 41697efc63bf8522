// SPDX-License-Identifier: Apache-2.0

// Package pools closes pools of connections, and tells the errors of servers that do
// not answer from refusals.
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
