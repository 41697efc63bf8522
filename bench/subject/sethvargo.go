// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
)

type sethvargoLimiter struct{ store limiter.Store }

func newSethvargo(q Quota) (Limiter, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(q.Capacity), Interval: window})
	if err != nil {
		return nil, err
	}
	return sethvargoLimiter{store}, nil
}

func (l sethvargoLimiter) Take(key string) bool {
	_, _, _, allowed, err := l.store.Take(context.Background(), key)
	return allowed && err == nil
}

func (l sethvargoLimiter) Close() { _ = l.store.Close(context.Background()) }
