// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/redisstore"
)

const (
	// replayMaxKeys bounds the buckets of a replay that are not full at the same
	// time, unless the store's URL says otherwise. It is high because traces are
	// not hostile, and memory is used only as buckets come.
	replayMaxKeys = 1 << 26

	// replayCall is how long a call of Redis may take, unless the store's URL says
	// otherwise: what a slow one would do to the traffic is not the question.
	replayCall = 10 * time.Second

	// cleanTimeout is for removing what a replay has left in Redis. What remains
	// expires within the hour.
	cleanTimeout = time.Minute
	scanCount    = 1000
)

// A replayStore is the store of one replay. The zero value has none.
type replayStore struct {
	mete.Store
	memory *memstore.Store
	client rueidis.Client // nil: memory
	prefix string
}

// newStore makes the store that the command line names, with the time of the trace.
func (c *replayCommand) newStore(ctx context.Context, now func() bucket.Instant) (s replayStore, err error) {
	if c.store.Redis == "" {
		config := c.store.Memory
		config.Now = now
		s.memory, err = memstore.New(config)
		s.Store = s.memory
		return s, err
	}
	options, config, err := redisstore.ParseURL(c.store.Redis)
	if err != nil {
		return s, err
	}
	if config.Timeout == 0 {
		config.Timeout = replayCall
	}
	options.ConnWriteTimeout = 2 * config.Timeout
	config.Now, config.Prefix = now, config.Prefix+"replay:"+rand.Text()+":"
	if s.client, err = redisstore.Dial(ctx, options); err != nil {
		return replayStore{}, offTrace{err}
	}
	s.prefix = config.Prefix
	store, err := redisstore.New(s.client, config)
	s.Store = patient{store}
	if err != nil {
		return s, offTrace{err}
	}
	return s, nil
}

// An offTrace is an error that has nothing to do with the trace.
type offTrace struct{ error }

func (e offTrace) Unwrap() error { return e.error }

// A patient store has as long as it takes, whatever rules say.
type patient struct{ *redisstore.Store }

func (p patient) Take(ctx context.Context, dst []bucket.Snapshot, charges []mete.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
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

// close leaves nothing in Redis.
func (s *replayStore) close() error {
	if s.client == nil {
		return nil
	}
	defer s.client.Close()
	if store, ok := s.Store.(patient); ok && store.Store != nil {
		store.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	for _, node := range s.client.Nodes() {
		if err := s.clean(ctx, node); err != nil {
			return offTrace{fmt.Errorf("keys that begin with %s are left in Redis for an hour: %w", s.prefix, err)}
		}
	}
	return nil
}

// clean removes the keys that one server has.
func (s *replayStore) clean(ctx context.Context, node rueidis.Client) error {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.prefix) + "*"
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(scanCount).Build()).AsScanEntry()
		if err != nil {
			return err
		}
		commands := make(rueidis.Commands, 0, len(page.Elements))
		for _, key := range page.Elements {
			commands = append(commands, s.client.B().Unlink().Key(key).Build())
		}
		for _, result := range s.client.DoMulti(ctx, commands...) {
			if err := result.Error(); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}
