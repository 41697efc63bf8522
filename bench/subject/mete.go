// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
)

// meteMaxKeys bounds mete's store: more than any run uses. It is a bound, not a
// size to begin with.
const meteMaxKeys = 8_000_000

type meteLimiter struct {
	store *memstore.Store
	limit bucket.Limit
}

func newMete(q Quota) (Limiter, error) {
	rate := bucket.Rate{Tokens: bucket.Token, Per: q.Every}
	limit, err := bucket.NewLimit(bucket.Tokens(q.Capacity)*bucket.Token, rate)
	if err != nil {
		return nil, err
	}
	store, err := memstore.New(memstore.Config{MaxKeys: meteMaxKeys})
	if err != nil {
		return nil, err
	}
	return &meteLimiter{store: store, limit: limit}, nil
}

func (l *meteLimiter) Take(key string) bool {
	v, _ := l.store.TakeOne(key, &l.limit, bucket.Token)
	return v.Allowed()
}

func (*meteLimiter) Close() {}
