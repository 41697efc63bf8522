// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	replaying "github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/store"
)

const (
	// replayMaxKeys bounds the buckets in memory that are not full at the same time, unless the store's URL has
	// max_keys. The bound is high because traces are not hostile and unused capacity takes no memory.
	replayMaxKeys = 1 << 26

	// replayCall is the timeout of a call to a shared store, unless its URL has one. It is long because a replay
	// does not model slow stores.
	replayCall = 10 * time.Second

	// cleanTimeout bounds the removal of buckets from a shared store. Buckets that remain expire within an hour.
	cleanTimeout = time.Minute
)

// newStore opens the store of --store with a clock that follows the trace. In a shared store, the replay uses a
// unique key prefix.
func (c *replayCommand) newStore(ctx context.Context, now func() bucket.Instant) (stores.Store, error) {
	s, _, err := stores.Open(ctx, c.store, stores.Options{Now: now, Private: true, Timeout: replayCall})
	if err != nil {
		return nil, storeError{err}
	}
	return s, nil
}

// A storeError is a failure of the store. It does not depend on a line of the trace.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// An untimedStore ignores the store timeouts of rules.
type untimedStore struct{ mete.Store }

func (p untimedStore) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	mode.Within = 0
	return p.Store.Take(ctx, dst, charges, mode)
}

func overflowCount(s stores.Store) uint64 {
	if m, ok := s.(*stores.Memory); ok {
		return m.Stats().Spilled()
	}
	return 0
}

// closeReplay removes the buckets of a replay and closes the store.
func closeReplay(s stores.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := errors.Join(s.Clean(ctx), s.Close()); err != nil {
		return storeError{err}
	}
	return nil
}

func (c *replayCommand) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.std.In), nil
	}
	return os.Open(name)
}

// size returns the total stored size of all traces in bytes, or 0 if one of them is a stream. A missing file is an
// error before the replay starts.
func (c *replayCommand) size() (size int64, err error) {
	known := true
	for _, name := range c.traces {
		if name == "-" {
			known = false
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		known = known && info.Mode().IsRegular()
		size += info.Size()
	}
	if !known {
		return 0, nil
	}
	return size, nil
}

// progress returns a progress bar, or nil if standard error is not a terminal or the bar would mix with the
// output.
func (c *replayCommand) progress(size int64) *replaying.Progress {
	if !isTerminal(c.std.Err) || c.format == "json" && isTerminal(c.std.Out) {
		return nil
	}
	return replaying.NewProgress(c.std.Err, size, time.Now)
}
