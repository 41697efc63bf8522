// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"golang.org/x/time/rate"

	"github.com/metehq/mete/bench/exactness/wire"
)

func newXTime(s wire.Setup) (wire.Limiter, error) {
	byKey := newKeyed(s.Limits, func(l wire.Limit) *rate.Limiter { return rate.NewLimiter(rate.Every(l.Every()), l.Capacity) })
	take := func(_ context.Context, limit int, key string) (bool, time.Duration, error) {
		return byKey.get(limit, key).Allow(), wire.NoRetry, nil
	}
	change := func(limits []wire.Limit) error {
		byKey.change(limits, func(r *rate.Limiter, l wire.Limit) {
			r.SetLimit(rate.Every(l.Every()))
			r.SetBurst(l.Capacity)
		})
		return nil
	}
	return chain{take, change}, nil
}

func newJuju(s wire.Setup) (wire.Limiter, error) {
	byKey := newKeyed(s.Limits, func(l wire.Limit) *ratelimit.Bucket { return ratelimit.NewBucket(l.Every(), int64(l.Capacity)) })
	take := func(_ context.Context, limit int, key string) (bool, time.Duration, error) {
		return byKey.get(limit, key).TakeAvailable(1) == 1, wire.NoRetry, nil
	}
	return chain{take: take}, nil
}

func newTollbooth(s wire.Setup) (wire.Limiter, error) {
	var byLimit []*tollboothlimiter.Limiter
	set := func(t *tollboothlimiter.Limiter, l wire.Limit) {
		t.SetMax(float64(l.Capacity) / l.Period.Seconds()).SetBurst(l.Capacity)
	}
	for _, l := range s.Limits {
		t := tollbooth.NewLimiter(1, &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
		set(t, l)
		byLimit = append(byLimit, t)
	}
	take := func(_ context.Context, limit int, key string) (bool, time.Duration, error) {
		return tollbooth.LimitByKeys(byLimit[limit], []string{key}) == nil, wire.NoRetry, nil
	}
	change := func(limits []wire.Limit) error {
		for i, l := range limits {
			set(byLimit[i], l)
		}
		return nil
	}
	return chain{take, change}, nil
}

func newSethvargo(s wire.Setup) (wire.Limiter, error) {
	var stores []limiter.Store
	for _, l := range s.Limits {
		store, err := memorystore.New(&memorystore.Config{Tokens: uint64(l.Capacity), Interval: l.Period})
		if err != nil {
			return nil, err
		}
		stores = append(stores, store)
	}
	var known sync.Map // a key and its limit, to true
	take := func(ctx context.Context, limit int, key string) (bool, time.Duration, error) {
		known.Store(limitKey{limit, key}, true)
		_, _, reset, allowed, err := stores[limit].Take(ctx, key)
		return allowed, time.Until(time.Unix(0, int64(reset))), err
	}
	change := func(limits []wire.Limit) error {
		var err error
		for k := range known.Range {
			k := k.(limitKey)
			l := limits[k.limit]
			err = errors.Join(err, stores[k.limit].Set(context.Background(), k.key, uint64(l.Capacity), l.Period))
		}
		return err
	}
	return chain{take, change}, nil
}

type limitKey struct {
	limit int
	key   string
}

func newHttprate(s wire.Setup) (wire.Limiter, error) {
	var handlers []http.Handler
	for _, l := range s.Limits {
		limit := httprate.LimitBy(l.Capacity, l.Period, func(r *http.Request) (string, error) {
			return r.Header.Get("X-Key"), nil
		})
		handlers = append(handlers, limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}
	take := func(ctx context.Context, limit int, key string) (bool, time.Duration, error) {
		r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
		r.Header.Set("X-Key", key)
		w := httptest.NewRecorder()
		handlers[limit].ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK:
			return true, wire.NoRetry, nil
		case http.StatusTooManyRequests:
			seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
			return false, time.Duration(seconds) * time.Second, err
		default:
			return false, wire.NoRetry, errors.New(w.Body.String())
		}
	}
	return chain{take: take}, nil
}
