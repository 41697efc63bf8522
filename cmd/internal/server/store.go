// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/sharedkey"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
)

// A storage is where the buckets are.
type storage struct {
	mete.Store // what the limiter is given

	memory *memstore.Store // nil unless they are in the process
	remote *remote         // nil if they are
	local  *memstore.Store // for rules that say local
	saver  *saver          // nil: the buckets are not saved
	key    []byte          // of the hashes in bucket keys
}

// keyFor returns a key for one purpose, which servers with the same hash key share: their
// hashes and their jitter agree. It is nil, for a random key, while there is no hash key.
func (s *storage) keyFor(purpose string) []byte {
	if s.key == nil {
		return nil
	}
	key := sharedkey.Derive(purpose, string(s.key))
	return key[:]
}

// nodes is how many processes share the store.
func (s *storage) nodes() int {
	if s.remote == nil {
		return 1
	}
	return s.remote.node.Nodes()
}

// openStore opens the store that the settings name.
func (s *Server) openStore(ctx context.Context) (err error) {
	u := s.config.Store
	if u.Remote() {
		err = s.openRemote(ctx, u)
	} else {
		err = s.openMemory(u)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if s.config.HashKey != "" {
		s.store.key = []byte(s.config.HashKey)
	}
	s.store.local, err = memstore.New(memstore.Config{})
	return err
}

// openMemory makes a memory store, with the buckets that were saved, if there are
// any. A file that cannot be restored from is an error, and never an empty store.
func (s *Server) openMemory(u *storeurl.URL) error {
	if u.File == "" {
		store, err := memstore.New(u.Memory)
		if err != nil {
			return err
		}
		return s.useMemory(store, nil)
	}
	if info, err := os.Stat(filepath.Dir(u.File)); err != nil || !info.IsDir() {
		return fmt.Errorf("file: there is no directory %s: make it, or name another file", filepath.Dir(u.File))
	}
	lock, err := lockFile(u.File, s.log)
	if err != nil {
		return err
	}
	if err = s.restoreMemory(u, lock); err != nil {
		unlock(lock)
	}
	return err
}

// restoreMemory makes a memory store with the buckets of a file that is locked.
func (s *Server) restoreMemory(u *storeurl.URL, lock *os.File) error {
	store, err := memstore.Restore(u.File, u.Memory)
	switch {
	case err == nil:
		s.log.Info("buckets restored: what was spent is missing still", "file", u.File, "keys", store.Stats().Keys)
	case errors.Is(err, fs.ErrNotExist):
		s.log.Info("no buckets are saved yet: all are full", "file", u.File)
		if store, err = memstore.New(u.Memory); err != nil {
			return err
		}
	default:
		return err
	}
	return s.useMemory(store, newSaver(store, u, lock, s.log))
}

// useMemory keeps the buckets in store. The key of the hashes lasts as long as they do.
func (s *Server) useMemory(store *memstore.Store, saver *saver) error {
	key, err := store.DeriveKey(context.Background(), policy.HashPurpose)
	if err != nil {
		return err
	}
	s.store = storage{Store: store, memory: store, saver: saver, key: key[:]}
	return nil
}
