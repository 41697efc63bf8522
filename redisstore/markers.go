// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// markers collects and deletes the keys that mark takes without an ID as refunded. A marker is useless once the
// refund cannot be repeated, and in a cluster, each take that a later slot denies leaves one. Keys are deleted in
// batches: while one deletion is in flight, the next batch is gathered. Keys that cannot be deleted expire.
type markers struct {
	store *Store

	mu   sync.Mutex // guards the fields below
	keys []string
	busy bool
}

func (m *markers) enqueue(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.keys) < maxUndoing {
		m.keys = append(m.keys, key)
	}
	if !m.busy {
		m.busy = true
		m.store.undo.idle.Go(m.deleteAll)
	}
}

func (m *markers) deleteAll() {
	for keys := m.takeKeys(); len(keys) > 0; keys = m.takeKeys() {
		commands := make(rueidis.Commands, 0, len(keys))
		for _, k := range keys {
			commands = append(commands, m.store.client.B().Del().Key(k).Build())
		}
		ctx, cancel := context.WithTimeout(context.Background(), m.store.config.Timeout)
		m.store.client.DoMulti(ctx, commands...)
		cancel()
	}
}

func (m *markers) takeKeys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := m.keys
	m.keys, m.busy = nil, len(keys) > 0
	return keys
}
