// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A BucketState is the current state of one bucket of the policy. It is a value. The caller must not change the
// memory it refers to.
type BucketState struct {
	// Status holds the rule, the active limit, and the store's snapshot of the bucket. Cost is the rule's
	// default cost, without [Config.Scale], and RetryAfter is the wait for a request of that cost.
	Status

	At bucket.Instant

	// Slots are the slots of a concurrency limit that requests hold, in the order of their ends, at most 100. SlotsAt is
	// the time of the list by the store's clock. The IDs are secret: see [Slots.ID]. A store that is no
	// [store.SlotLister] has no list.
	Slots   []bucket.Slot
	SlotsAt bucket.Instant

	// Shadow reports whether the rule's mode or an override keeps the limit from denying this key.
	Shadow bool

	// Block and Allow are active overrides that deny or allow every request charged to the bucket. They are nil
	// if there are none. Other overrides may apply to some of these requests. An override that replaced the
	// rule's limit is in Limit.Override.
	Block, Allow *policy.Override
}

// maxSlots bounds [BucketState.Slots].
const maxSlots = 100

// Bucket returns the state of the bucket with this key, and spends nothing. Keys come from an [Account] of an
// explanation or from [Status.Key]. At is the time of [Config.Now]; the state uses the store's clock. For
// sharded and leased limits, the state is the total over shards and leases.
//
// The error is a [policy.KeyError] if no limit of the policy has the key. If the store does not answer within
// the rule's deadline, the error is the store's, such as a [StoreError]. Bucket never shows local buckets.
func (l *Limiter) Bucket(ctx context.Context, key string) (BucketState, error) {
	b, err := l.findBucket(ctx, key)
	if err != nil {
		return BucketState{}, err
	}
	if b.Snapshot, err = l.chargeBucket(ctx, &b, b.Cost, Mode{DryRun: true}); err != nil {
		return BucketState{}, err
	}
	if lister, ok := store.As[store.SlotLister](l.store); ok && b.Limit.HoldsSlot() {
		if b.Rule.Deadline > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, b.Rule.Deadline)
			defer cancel()
		}
		if b.Slots, b.SlotsAt, err = lister.Slots(ctx, b.Key, maxSlots); err != nil {
			return BucketState{}, err
		}
	}
	return b, nil
}

// ResetBucket fills the bucket with this key, as [Limiter.Reset] does for a request. It returns the state
// read before the reset: another process can change the bucket between the read and the reset. The reset adds the
// missing tokens of that state: see [bucket.Snapshot.Missing]. [Limiter.TakeBucket] can take them away again.
// The errors are the same as for [Limiter.Bucket].
func (l *Limiter) ResetBucket(ctx context.Context, key string) (before BucketState, err error) {
	if before, err = l.Bucket(ctx, key); err != nil {
		return BucketState{}, err
	}
	if err := l.reset(ctx, []store.Charge{before.charge(0)}); err != nil {
		return BucketState{}, err
	}
	return before, nil
}

// TakeBucket takes up to most tokens from the bucket with this key, rounded to a thousandth. It never leaves
// the bucket in debt. From a leaky bucket it also takes the free places in the queue, so later requests wait
// behind it. TakeBucket ignores rules, overrides and [Config.Scale], and calls no hook.
//
// TakeBucket can take back the tokens that [Limiter.ResetBucket] added, if they are still there. The taken tokens then
// refill as if they had been spent now.
//
// TakeBucket returns the new state and the number of tokens taken. The errors are the same as for
// [Limiter.Bucket], plus [ErrCost]. [Spent] of an error reports whether tokens may have been taken.
func (l *Limiter) TakeBucket(ctx context.Context, key string, most Tokens) (b BucketState, taken bucket.Tokens, err error) {
	tokens, ok := most.count()
	if !ok || tokens == 0 {
		return BucketState{}, 0, fmt.Errorf("%w: %v tokens: must be a multiple of 0.001 above 0 and at most %v", ErrCost, most, bucket.MaxTokens)
	}
	if b, err = l.findBucket(ctx, key); err != nil {
		return BucketState{}, 0, err
	}
	if b.Limit.HoldsSlot() {
		return BucketState{}, 0, fmt.Errorf("%w: the key has slots of a concurrency limit, and only requests take them: lower max instead", ErrRequest)
	}
	cost := b.Cost
	for attempt := range maxTakes {
		if b.Snapshot, err = l.chargeBucket(ctx, &b, tokens, Mode{}); err != nil {
			return BucketState{}, 0, err
		}
		if b.Allowed {
			taken = tokens
			break
		}
		// Rounding can hide up to a thousandth per shard.
		if tokens = min(tokens, b.Room()-bucket.Tokens(attempt*b.Limit.Shards)); tokens <= 0 {
			break
		}
	}
	b.Cost = cost
	b.RetryAfter = b.RoomAfter(cost)
	b.Allowed = b.RetryAfter == 0
	return b, taken, nil
}

// maxTakes bounds the attempts of TakeBucket while other callers take tokens at the same time.
const maxTakes = 8

func (l *Limiter) findBucket(ctx context.Context, key string) (BucketState, error) {
	if ctx.Err() != nil {
		return BucketState{}, contextError(ctx)
	}
	m, now := l.policy.Load(), l.now()
	if m == nil {
		return BucketState{}, &policy.KeyError{Reason: "the limiter has no policy"}
	}
	match, verdict, err := m.Bucket(key, now)
	if err != nil {
		return BucketState{}, err
	}
	b := BucketState{At: now, Shadow: match.Shadow, Block: verdict.Block, Allow: verdict.Allow}
	b.Rule, b.Limit, b.Key, b.Cost = match.Rule, match.Limit, match.Key, match.Cost
	return b, nil
}

func (b *BucketState) charge(cost bucket.Tokens) store.Charge {
	return store.Charge{Key: b.Key, Limit: b.Limit.Bucket.ForKey(b.Key), Cost: cost, Shards: b.Limit.Shards, Leased: b.Limit.Leased}
}

// chargeBucket charges local costs of an earlier outage to the store, and then takes a cost.
func (l *Limiter) chargeBucket(ctx context.Context, b *BucketState, cost bucket.Tokens, mode Mode) (bucket.Snapshot, error) {
	charges := []store.Charge{b.charge(cost)}
	if mode.DryRun { // an admin neither obeys nor starts a penalty
		charges[0].Penalty = b.Limit.Penalty
	}
	mode.Within, mode.Fresh = b.Rule.Deadline, true
	if l.outage != nil {
		var err error
		if mode.Within, err = l.recoverKeys(ctx, charges, mode.Within); err != nil {
			return bucket.Snapshot{}, err
		}
	}
	snaps, _, err := l.takeCharges(ctx, charges, mode)
	if err != nil {
		return bucket.Snapshot{}, err
	}
	return snaps[0], nil
}
