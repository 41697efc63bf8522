// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/memstore"
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

// A replayStore is the store of one replay. The zero value has none.
type replayStore struct {
	mete.Store
	memory *memstore.Store // nil: it is elsewhere

	// end closes a store that is elsewhere, removes what the replay has left
	// there, and disconnects. It is nil for one in memory.
	end func(ctx context.Context) error
}

// newStore makes the store that the command line names, with the time of the trace.
func (c *replayCommand) newStore(ctx context.Context, now func() bucket.Instant) (s replayStore, err error) {
	switch {
	case c.store.Scheme == storeurl.Redis:
		s, err = openRedis(ctx, c.store, now)
	case c.store.Scheme == storeurl.Postgres:
		s, err = openPostgres(ctx, c.store, now)
	default:
		config := c.store.Memory
		config.Now = now
		s.memory, err = memstore.New(config)
		s.Store = s.memory
		return s, err
	}
	if err != nil {
		return replayStore{}, offTrace{err}
	}
	s.Store = patient{s.Store}
	return s, nil
}

// ownPrefix returns a prefix under which nobody else has anything.
func ownPrefix(prefix string) string { return prefix + "replay:" + rand.Text() + ":" }

// An offTrace is an error that has nothing to do with the trace.
type offTrace struct{ error }

func (e offTrace) Unwrap() error { return e.error }

// A patient store has as long as it takes, whatever rules say.
type patient struct{ mete.Store }

func (p patient) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	mode.Within = 0
	return p.Store.Take(ctx, dst, charges, mode)
}

// overflowed is how many requests found no room in memory.
func (s *replayStore) overflowed() uint64 {
	if s.memory == nil {
		return 0
	}
	return s.memory.Stats().Overflowed
}

// close leaves nothing behind.
func (s *replayStore) close() error {
	if s.end == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := s.end(ctx); err != nil {
		return offTrace{err}
	}
	return nil
}
