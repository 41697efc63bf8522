// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
)

// openStore opens the store that the settings name, with the buckets that were
// saved, if there are any. A file that cannot be restored from is an error, and
// never an empty store.
func (s *Server) openStore() (*memstore.Store, error) {
	u, err := storeurl.Parse(s.config.Store)
	if err != nil {
		return nil, err
	}
	if u.File == "" {
		store, err := memstore.New(u.Memory)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		return store, nil
	}
	if info, err := os.Stat(filepath.Dir(u.File)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("store: file: there is no directory %s: make it, or name another file", filepath.Dir(u.File))
	}
	store, err := memstore.Restore(u.File, u.Memory)
	switch {
	case err == nil:
		s.log.Info("buckets restored: what was spent is missing still", "file", u.File, "keys", store.Stats().Keys)
	case errors.Is(err, fs.ErrNotExist):
		s.log.Info("no buckets are saved yet: all are full", "file", u.File)
		if store, err = memstore.New(u.Memory); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	default:
		return nil, fmt.Errorf("store: %w", err)
	}
	s.saver = newSaver(store, u, s.log)
	return store, nil
}
