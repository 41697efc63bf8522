// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/memstore"
)

// errorInterval is the shortest time between two log lines about failed saves.
const errorInterval = 10 * time.Second

// A saver saves a memory store to a file: see [memstore.Store.Save]. The zero saver saves nothing.
type saver struct {
	store  *memstore.Store
	file   string
	lock   *os.File // nil: the file could not be locked
	every  time.Duration
	log    *slog.Logger
	saved  time.Time // time of the last successful save
	failed time.Time // time of the last log line about a failure; zero after a success

	stop    func() // ends the saves; nil before start
	running sync.WaitGroup
}

// newSaver returns a saver with exclusive use of the file. It removes temporary files of a killed process.
func newSaver(store *memstore.Store, u *storeurl.URL, lock *os.File, log *slog.Logger) *saver {
	log = log.With("store", "memory")
	entries, err := os.ReadDir(filepath.Dir(u.File))
	if err != nil {
		log.Warn("cannot list temporary bucket files", "err", err)
	}
	for _, e := range entries {
		rest, _ := strings.CutPrefix(e.Name(), filepath.Base(u.File)+".")
		number, ok := strings.CutSuffix(rest, ".tmp")
		if ok && number != "" && strings.Trim(number, "0123456789") == "" {
			err := os.Remove(filepath.Join(filepath.Dir(u.File), e.Name()))
			log.Info("temporary bucket file removed", "file", e.Name(), "err", err)
		}
	}
	return &saver{store: store, file: u.File, lock: lock, every: u.Every, log: log, saved: time.Now()}
}

// start saves immediately, to detect an unwritable file early, and then at intervals until close.
func (s *saver) start(ctx context.Context) {
	if s.store == nil {
		return
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() {
		s.save()
		if s.every > 0 {
			follow.Every(ctx, s.every, s.save)
		}
	})
}

// save saves the buckets. It logs at most one error per [errorInterval] and leaves the retry to the next interval.
func (s *saver) save() {
	begin := time.Now()
	if err := s.store.Save(s.file); err != nil {
		if begin.Sub(s.failed) >= errorInterval {
			s.log.Error("cannot save buckets, a restart would lose tokens spent since the last save", "err", err,
				"file", s.file, "last", begin.Sub(s.saved).Round(time.Millisecond))
			s.failed = begin
		}
		return
	}
	if !s.failed.IsZero() {
		s.log.Info("buckets saved again", "file", s.file)
	}
	s.saved, s.failed = begin, time.Time{}
	s.log.Debug("buckets saved", "file", s.file, "keys", s.store.Stats().Keys, "took", time.Since(begin))
}

// close saves a last time if start was called, and releases the lock.
func (s *saver) close() error {
	defer unlock(s.lock)
	if s.stop == nil {
		return nil
	}
	s.stop()
	s.running.Wait()
	if err := s.store.Save(s.file); err != nil {
		s.log.Error("cannot save buckets, a restart loses tokens spent since the last save", "err", err, "file", s.file)
		return fmt.Errorf("store: %w", err)
	}
	s.log.Info("buckets saved", "file", s.file, "keys", s.store.Stats().Keys)
	return nil
}
