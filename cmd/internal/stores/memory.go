// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

var memory = Kind{Scheme: storeurl.Memory, Open: openMemory}

// A Memory is a store in this process.
type Memory struct {
	*memstore.Store
	saver     *saver
	documents store.Documents
}

// openMemory opens a memory store and restores the buckets from its file, if any. An invalid file is an error, so
// that the server never starts with an empty store by accident.
func openMemory(_ context.Context, u *storeurl.URL, o Options) (Store, error) {
	config := u.Memory
	config.Now = o.Now
	if u.File == "" {
		s, err := memstore.New(config)
		return &Memory{Store: s, saver: new(saver)}, err
	}
	if o.ReadOnly {
		s, err := memstore.Restore(u.File, config)
		return &Memory{Store: s, saver: new(saver)}, err
	}
	if info, err := os.Stat(filepath.Dir(u.File)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("file: there is no directory %s: create it, or name another file", filepath.Dir(u.File))
	}
	lock, err := lockFile(u.File, o.Log)
	if err != nil {
		return nil, err
	}
	s, err := memstore.Restore(u.File, config)
	switch {
	case err == nil:
		o.Log.Info("buckets restored", "store", "memory", "file", u.File, "keys", s.Stats().Keys)
	case errors.Is(err, fs.ErrNotExist):
		o.Log.Info("no saved buckets found, all buckets are full", "store", "memory", "file", u.File)
		s, err = memstore.New(config)
	}
	if err != nil {
		unlock(lock)
		return nil, err
	}
	return &Memory{s, newSaver(s, u, lock, o.Log), newDocumentFile(u.File)}, nil
}

func (m *Memory) Ping(context.Context) error { return nil }

func (m *Memory) Nodes() int { return 1 }

// Documents implements [Store]. It stores overrides next to the file of buckets.
func (m *Memory) Documents() store.Documents { return m.documents }

func (m *Memory) Metrics() metrics.Source { return metrics.Memory(m.Stats) }

// Start implements [Store]. It starts periodic saves.
func (m *Memory) Start(ctx context.Context) error {
	m.saver.start(ctx)
	return nil
}

// Clean implements [Store]. The buckets end with the process.
func (m *Memory) Clean(context.Context) error { return nil }

// Close implements [Store]. It saves one last time.
func (m *Memory) Close() error { return m.saver.close() }
