// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"strconv"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

var _ store.SlotLister = (*Store)(nil)

// Slots implements [store.SlotLister]. It reads the clock first, so a slot may end between both commands.
func (s *Store) Slots(ctx context.Context, key string, most int) ([]bucket.Slot, bucket.Instant, error) {
	now := bucket.Instant(s.now())
	if now < 0 {
		at, err := s.client.Do(ctx, s.client.B().Time().Build()).AsIntSlice()
		if err == nil && len(at) != 2 {
			err = newAnswerError("invalid time", strconv.Itoa(len(at)))
		}
		if err != nil {
			return nil, 0, withOp(newStoreError(err), "slots")
		}
		now = bucket.Instant(at[0]*1_000_000 + at[1])
	}
	command := s.client.B().Zrangebyscore().Key(s.bucketPrefix+key).Min("("+strconv.FormatInt(int64(now), 10)).Max("+inf").
		Withscores().Limit(0, int64(max(most, 0))).Build()
	scores, err := s.client.Do(ctx, command).AsZScores()
	if err != nil {
		return nil, 0, withOp(newStoreError(err), "slots")
	}
	list := make([]bucket.Slot, 0, len(scores))
	for _, z := range scores {
		id, err := bucket.ParseSlotID(z.Member)
		if err != nil {
			return nil, 0, withOp(newStoreError(newAnswerError("invalid slot", z.Member)), "slots")
		}
		list = append(list, bucket.Slot{ID: id, End: bucket.Instant(z.Score)})
	}
	return list, now, nil
}
