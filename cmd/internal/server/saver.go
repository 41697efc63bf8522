// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
)

// A saver keeps a memory store in a file: see [memstore.Store.Save]. A nil one
// does nothing.
type saver struct {
	store  *memstore.Store
	file   string
	lock   *os.File // nil where the file could not be locked
	every  time.Duration
	log    *slog.Logger
	saved  time.Time // the last time that worked
	failed time.Time // when it was last said that it did not; zero once it did
}

// newSaver returns a saver that has the file to itself, and removes what a
// process that was killed while it saved has left beside it.
func newSaver(store *memstore.Store, u *storeurl.URL, lock *os.File, log *slog.Logger) *saver {
	entries, err := os.ReadDir(filepath.Dir(u.File))
	if err != nil {
		log.Warn("cannot look for unfinished files beside the buckets", "error", err)
	}
	for _, e := range entries {
		rest, _ := strings.CutPrefix(e.Name(), filepath.Base(u.File)+".")
		number, ok := strings.CutSuffix(rest, ".tmp")
		if ok && number != "" && strings.Trim(number, "0123456789") == "" {
			err := os.Remove(filepath.Join(filepath.Dir(u.File), e.Name()))
			log.Info("removed an unfinished file of buckets", "file", e.Name(), "error", err)
		}
	}
	return &saver{store: store, file: u.File, lock: lock, every: u.Every, log: log, saved: time.Now()}
}

// run saves at once, so that a file that cannot be written is known early, and
// then at intervals.
func (s *saver) run(ctx context.Context) {
	if s == nil {
		return
	}
	var tick <-chan time.Time
	if s.every > 0 {
		ticker := time.NewTicker(s.every)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		s.save()
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

// save saves. What fails is said at most every [complaintInterval], and is tried
// again at the next interval.
func (s *saver) save() {
	begin := time.Now()
	if err := s.store.Save(s.file); err != nil {
		if begin.Sub(s.failed) >= complaintInterval {
			s.log.Error("cannot save the buckets: a restart now would forgive what was spent since they last were", "error", err,
				"file", s.file, "last", begin.Sub(s.saved).Round(time.Millisecond))
			s.failed = begin
		}
		return
	}
	if !s.failed.IsZero() {
		s.log.Info("the buckets are saved again", "file", s.file)
	}
	s.saved, s.failed = begin, time.Time{}
	s.log.Debug("buckets saved", "file", s.file, "keys", s.store.Stats().Keys, "took", time.Since(begin))
}

// close lets other servers use the file.
func (s *saver) close() {
	if s != nil {
		unlock(s.lock)
	}
}

// end saves what the last requests have spent.
func (s *saver) end() error {
	if s == nil {
		return nil
	}
	if err := s.store.Save(s.file); err != nil {
		s.log.Error("cannot save the buckets: a restart forgives what was spent since they last were", "error", err, "file", s.file)
		return fmt.Errorf("store: %w", err)
	}
	s.log.Info("buckets saved", "file", s.file, "keys", s.store.Stats().Keys)
	return nil
}
