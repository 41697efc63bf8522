// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"math"
	"sync"
	"time"

	"github.com/go-chi/httprate"
)

// httprateLimiter does the work of httprate's RateLimiter.OnLimit under its lock, without header fields and
// with one clock reading instead of three.
type httprateLimiter struct {
	limit   int
	offset  time.Duration // of the windows from round instants
	counter httprate.LimitCounter

	mu sync.Mutex // makes the check and the count atomic
}

func newHttprate(q Quota) (Limiter, error) {
	start := time.Now().UTC()
	return &httprateLimiter{
		limit:   q.Capacity,
		offset:  start.Sub(start.Truncate(window)),
		counter: httprate.NewLocalLimitCounter(window),
	}, nil
}

func (l *httprateLimiter) Take(key string) bool {
	now := time.Now().UTC()
	current := now.Add(-l.offset).Truncate(window).Add(l.offset)
	l.mu.Lock()
	defer l.mu.Unlock()
	count, before, err := l.counter.Get(key, current, current.Add(-window))
	if err != nil {
		return false
	}
	left := float64(window - now.Sub(current))
	rate := float64(before)*left/float64(window) + float64(count)
	if int(math.Round(rate))+1 > l.limit {
		return false
	}
	return l.counter.IncrementBy(key, current, 1) == nil
}

func (*httprateLimiter) Close() {}
