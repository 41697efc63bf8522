// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"

	"github.com/metehq/mete"
	"github.com/redis/rueidis"
)

// Reset implements [mete.Store]. Buckets of one slot are reset atomically. If some slots fail, the error is
// [mete.MaybeSpent]. Callers can retry a reset.
func (s *Store) Reset(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	var groups [][]string
	places := map[int]int{} // by slot
	for _, k := range keys {
		slot := 0
		if s.cluster {
			slot = s.slot(k)
		}
		at, known := places[slot]
		if !known {
			at = len(groups)
			places[slot], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], s.bucketPrefix+k, s.penaltyKey(k), s.dueKey(k))
	}
	done, alone, err := s.deleteGroups(ctx, groups)
	if len(alone) > 0 { // the slot is moving to another node
		more, _, later := s.deleteGroups(ctx, alone)
		if done += more; err == nil {
			err = later
		}
	}
	if err == nil {
		return nil
	}
	if done > 0 {
		err.Spent = mete.MaybeSpent
	}
	return withOp(err, "reset")
}

// deleteGroups deletes each group of keys atomically. It returns the number of deleted groups, each key of a
// moving slot as its own group, and the first other error.
func (s *Store) deleteGroups(ctx context.Context, groups [][]string) (done int, alone [][]string, first *mete.StoreError) {
	commands := make(rueidis.Commands, 0, len(groups))
	for _, keys := range groups {
		commands = append(commands, s.client.B().Del().Key(keys...).Build())
	}
	for i, r := range s.client.DoMulti(ctx, commands...) {
		err := r.Error()
		if err == nil {
			done++
			continue
		}
		failed := newStoreError(err)
		switch {
		case len(groups[i]) > 1 && isTryAgain(failed):
			for _, k := range groups[i] {
				alone = append(alone, []string{k})
			}
		case first == nil:
			first = failed
		}
	}
	return done, alone, first
}
