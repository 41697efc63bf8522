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
	// replayMaxKeys bounds the buckets of a replay that are not full at the same
	// time, unless the store's URL says otherwise. It is high because traces are
	// not hostile, and memory is used only as buckets come.
	replayMaxKeys = 1 << 26

	// replayCall is how long a call of a store elsewhere may take, unless its URL
	// says otherwise: what a slow one would do to the traffic is not the question.
	replayCall = 10 * time.Second

	// cleanTimeout is for removing what a replay has left in such a store. What
	// remains expires within the hour.
	cleanTimeout = time.Minute
)

// newStore opens the store that the command line names, with the time of the trace. What a
// replay keeps in a shared store has a prefix of its own.
func (c *replayCommand) newStore(ctx context.Context, now func() bucket.Instant) (stores.Store, error) {
	s, _, err := stores.Open(ctx, c.store, stores.Options{Now: now, Own: true, Timeout: replayCall})
	if err != nil {
		return nil, offTrace{err}
	}
	return s, nil
}

// An offTrace is an error that has nothing to do with the trace.
type offTrace struct{ error }

func (e offTrace) Unwrap() error { return e.error }

// A patient store has as long as it takes, whatever rules say.
type patient struct{ mete.Store }

func (p patient) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	mode.Within = 0
	return p.Store.Take(ctx, dst, charges, mode)
}

// overflowed is the number of requests that found no room in memory.
func overflowed(s stores.Store) uint64 {
	if m, ok := s.(*stores.Memory); ok {
		return m.Stats().Overflowed
	}
	return 0
}

// closeReplay leaves nothing behind in a store.
func closeReplay(s stores.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := errors.Join(s.Clean(ctx), s.Close()); err != nil {
		return offTrace{err}
	}
	return nil
}

// open opens one of the traces.
func (c *replayCommand) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.std.In), nil
	}
	return os.Open(name)
}

// size is how many bytes all traces have together, as they are stored, or 0 where
// one of them has no end that is known. One that is not there is an error now, not
// only when it is opened.
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

// progress returns nil where nobody would see it, and where it would stand
// between the decisions.
func (c *replayCommand) progress(size int64) *replaying.Progress {
	if !isTerminal(c.std.Err) || c.format == "json" && isTerminal(c.std.Out) {
		return nil
	}
	return replaying.NewProgress(c.std.Err, size, time.Now)
}
