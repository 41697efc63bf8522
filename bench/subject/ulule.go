// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

type ululeLimiter struct{ limiter *limiter.Limiter }

// newUlule leaves the cleaner out: every 30 seconds, its default, it would walk
// all keys in the middle of a measurement.
func newUlule(q Quota) (Limiter, error) {
	store := memory.NewStoreWithOptions(limiter.StoreOptions{})
	return ululeLimiter{limiter.New(store, limiter.Rate{Period: window, Limit: int64(q.Capacity)})}, nil
}

func (l ululeLimiter) Take(key string) bool {
	state, err := l.limiter.Get(context.Background(), key)
	return !state.Reached && err == nil
}

func (ululeLimiter) Close() {}
