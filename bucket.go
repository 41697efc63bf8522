// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"context"
	"fmt"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Bucket is one bucket of the policy's, as it is now. It is a value; what it refers
// to must not be changed.
type Bucket struct {
	// Status has the rule, the limit in force for the bucket, and what the store shows
	// of it. Its Cost is what a request costs that says nothing, without [Config.Scale],
	// and RetryAfter how long that has to wait.
	Status

	At bucket.Instant

	// Shadow says that the limit denies nothing, for this key: by the rule's mode or by
	// an override.
	Shadow bool

	// Block and Allow are overrides that deny all requests that would spend from the
	// bucket, or let all of them through; nil for none. Others may be about some of
	// these requests. The override that has put the limit in force is Limit.Override.
	Block, Allow *policy.Override
}

// Bucket shows a bucket by its key: as an [Account] of an explanation has it, and
// [Denial.Keys]. It spends nothing. At is the time by [Config.Now]; what the bucket
// holds is at the store's. Of limits with shards, and of leased ones, it shows what
// they come to.
//
// A key that no limit of the policy has is a [policy.KeyError]. Where the store does
// not answer within the rule's deadline there is no bucket, but an error as the store
// gives it, such as a [StoreError]: what this process decides meanwhile is not it.
func (l *Limiter) Bucket(ctx context.Context, key string) (Bucket, error) {
	b, err := l.find(ctx, key)
	if err != nil {
		return Bucket{}, err
	}
	if b.Snapshot, err = l.askBucket(ctx, &b, b.Cost, Mode{DryRun: true}); err != nil {
		return Bucket{}, err
	}
	return b, nil
}

// ResetBucket makes the bucket with a key full, as [Limiter.Reset] does those of a
// request. It returns the bucket as it was just before, which need not be the same
// instant: what it missed then, see [bucket.Snapshot.Missing], is what it was given.
// [Limiter.TakeBucket] takes that back. Errors are those of [Limiter.Bucket].
func (l *Limiter) ResetBucket(ctx context.Context, key string) (before Bucket, err error) {
	if before, err = l.Bucket(ctx, key); err != nil {
		return Bucket{}, err
	}
	if err := l.reset(ctx, []store.Charge{before.charge(0)}); err != nil {
		return Bucket{}, err
	}
	return before, nil
}

// TakeBucket takes up to so many tokens from the bucket with a key: as many as are
// there, to a thousandth, and none that would be owed. Of a leaky bucket it takes the
// room in its queue, too: those who come then wait behind it. It is no request: rules,
// overrides and [Config.Scale] have no say, and no hook is called.
//
// So it takes back what [Limiter.ResetBucket] gave, as far as that is still there. It
// does not bring back when what was spent comes back: what is taken is spent now.
//
// It returns the bucket as it is then, and how much was taken. Errors are those of
// [Limiter.Bucket], and [ErrCost]. [Spent] of one says whether tokens may have been
// taken.
func (l *Limiter) TakeBucket(ctx context.Context, key string, most Tokens) (b Bucket, taken bucket.Tokens, err error) {
	tokens, ok := most.count()
	if !ok || tokens == 0 {
		return Bucket{}, 0, fmt.Errorf("%w: %v tokens: must be a multiple of 0.001 above 0 and at most %v", ErrCost, most, bucket.MaxTokens)
	}
	if b, err = l.find(ctx, key); err != nil {
		return Bucket{}, 0, err
	}
	cost := b.Cost
	for attempt := range maxTakes {
		if b.Snapshot, err = l.askBucket(ctx, &b, tokens, Mode{}); err != nil {
			return Bucket{}, 0, err
		}
		if b.Allowed {
			taken = tokens
			break
		}
		// Of shards, rounding hides up to a thousandth each.
		if tokens = min(tokens, b.Room()-bucket.Tokens(attempt*b.Limit.Shards)); tokens <= 0 {
			break
		}
	}
	b.Cost = cost
	b.RetryAfter = b.RoomAfter(cost)
	b.Allowed = b.RetryAfter == 0
	return b, taken, nil
}

// maxTakes bounds how often what there is to take is found out anew, because others
// took it meanwhile.
const maxTakes = 8

// find finds what the policy says of a bucket.
func (l *Limiter) find(ctx context.Context, key string) (Bucket, error) {
	if ctx.Err() != nil {
		return Bucket{}, ended(ctx)
	}
	m, now := l.policy.Load(), l.now()
	if m == nil {
		return Bucket{}, &policy.KeyError{Reason: "there is no policy"}
	}
	match, verdict, err := m.Bucket(key, now)
	if err != nil {
		return Bucket{}, err
	}
	b := Bucket{At: now, Shadow: match.Shadow, Block: verdict.Block, Allow: verdict.Allow}
	b.Rule, b.Limit, b.Key, b.Cost = match.Rule, match.Limit, match.Key, match.Cost
	return b, nil
}

// charge is what asks b for a cost.
func (b *Bucket) charge(cost bucket.Tokens) store.Charge {
	return store.Charge{Key: b.Key, Limit: b.Limit.Bucket.For(b.Key), Cost: cost, Shards: b.Limit.Shards, Leased: b.Limit.Leased}
}

// askBucket asks the store for a cost, and charges what was spent locally before.
func (l *Limiter) askBucket(ctx context.Context, b *Bucket, cost bucket.Tokens, mode Mode) (bucket.Snapshot, error) {
	charges := []store.Charge{b.charge(cost)}
	mode.Within, mode.Fresh = b.Rule.Deadline, true
	if l.outage != nil {
		var err error
		if mode.Within, err = l.recover(ctx, charges, mode.Within); err != nil {
			return bucket.Snapshot{}, err
		}
	}
	snaps, _, err := l.takeFresh(ctx, charges, mode)
	if err != nil {
		return bucket.Snapshot{}, err
	}
	return snaps[0], nil
}
