// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// markers are the keys that say of takes without an ID that they have been given
// back. As soon as nobody can ask for that again they are of no use, and in a
// cluster every take that a later slot denies leaves one. They are deleted
// together, while a deletion is on the wire those of the next are gathered; what
// cannot be deleted expires.
type markers struct {
	store *Store

	mu   sync.Mutex // guards the fields below
	keys []string
	busy bool
}

// drop sees to it that a key is deleted.
func (m *markers) drop(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.keys) < maxUndoing {
		m.keys = append(m.keys, key)
	}
	if !m.busy {
		m.busy = true
		m.store.undo.idle.Go(m.run)
	}
}

// run deletes keys until there are none.
func (m *markers) run() {
	for keys := m.next(); len(keys) > 0; keys = m.next() {
		commands := make(rueidis.Commands, 0, len(keys))
		for _, k := range keys {
			commands = append(commands, m.store.client.B().Del().Key(k).Build())
		}
		ctx, cancel := context.WithTimeout(context.Background(), m.store.config.Timeout)
		m.store.client.DoMulti(ctx, commands...)
		cancel()
	}
}

func (m *markers) next() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := m.keys
	m.keys, m.busy = nil, len(keys) > 0
	return keys
}
