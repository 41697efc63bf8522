// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

type ululeLimiter struct{ limiter *limiter.Limiter }

// newUlule disables the cleaner, which would scan all keys every 30 seconds during a measurement.
func newUlule(q Quota) (Limiter, error) {
	store := memory.NewStoreWithOptions(limiter.StoreOptions{})
	return ululeLimiter{limiter.New(store, limiter.Rate{Period: window, Limit: int64(q.Capacity)})}, nil
}

func (l ululeLimiter) Take(key string) bool {
	state, err := l.limiter.Get(context.Background(), key)
	return !state.Reached && err == nil
}

func (ululeLimiter) Close() {}
