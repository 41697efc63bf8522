// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"sync"

	"golang.org/x/time/rate"
)

// xTimeMap is the usual keyed limiter on x/time/rate: a map with a mutex.
type xTimeMap struct {
	every rate.Limit
	burst int

	mu       sync.Mutex // guards limiters
	limiters map[string]*rate.Limiter
}

func newXTimeMap(q Quota) (Limiter, error) {
	return &xTimeMap{every: rate.Every(q.Every), burst: q.Capacity, limiters: map[string]*rate.Limiter{}}, nil
}

func (l *xTimeMap) Take(key string) bool {
	l.mu.Lock()
	limiter, ok := l.limiters[key]
	if !ok {
		limiter = rate.NewLimiter(l.every, l.burst)
		l.limiters[key] = limiter
	}
	l.mu.Unlock()
	return limiter.Allow()
}

func (*xTimeMap) Close() {}

// xTimeSyncMap is like xTimeMap, with a sync.Map instead of a mutex.
type xTimeSyncMap struct {
	every    rate.Limit
	burst    int
	limiters sync.Map // string to *rate.Limiter
}

func newXTimeSyncMap(q Quota) (Limiter, error) {
	return &xTimeSyncMap{every: rate.Every(q.Every), burst: q.Capacity}, nil
}

func (l *xTimeSyncMap) Take(key string) bool {
	limiter, ok := l.limiters.Load(key)
	if !ok {
		limiter, _ = l.limiters.LoadOrStore(key, rate.NewLimiter(l.every, l.burst))
	}
	return limiter.(*rate.Limiter).Allow()
}

func (*xTimeSyncMap) Close() {}
