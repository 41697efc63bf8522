// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/metehq/mete/policy"
)

// secretTimeout bounds how long [New], [Limiter.SetPolicy] and [Limiter.HashKey] wait for
// the store's secret.
const secretTimeout = 10 * time.Second

// A secret is what a limiter knows of its store's secret.
type secret struct {
	mu  sync.Mutex // guards key, and is held while the store is asked
	key []byte     // nil until the store has been asked
}

// HashKey returns the key that hashes parts of bucket keys: for a program that hashes
// parts of keys of its own. The limiter derives it from the secret of its store, which is
// the same in all processes that share the store. It asks the store once.
//
// It fails where the store is no [KeyDeriver], and wraps none: a key made at random would
// give each process, and each restart, full buckets of its own.
func (l *Limiter) HashKey() ([]byte, error) {
	l.secret.mu.Lock()
	defer l.secret.mu.Unlock()
	if l.secret.key != nil {
		return bytes.Clone(l.secret.key), nil
	}
	store, ok := as[KeyDeriver](l.given)
	if !ok {
		return nil, fmt.Errorf("store %T keeps no secret for that, and processes that share it need the same key: "+
			"set HashKey (for a policy: policy.Options.HashKey), or give the store a method DeriveKey, or Unwrap if it wraps another store", l.given)
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTimeout)
	defer cancel()
	key, err := store.DeriveKey(ctx, policy.HashPurpose)
	if err != nil {
		return nil, fmt.Errorf("ask the store for its secret: %w; try again when the store answers, or set HashKey (for a policy: policy.Options.HashKey)", err)
	}
	l.secret.key = key[:]
	return bytes.Clone(l.secret.key), nil
}
