// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bench/exactness/wire"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

// meteLimiter decides by the charges of requests. A decision without the store counts as an error, as other limiters
// report it.
type meteLimiter struct {
	*mete.Limiter
	limits swapped[[]bucket.Limit]
}

func newMete(s wire.Setup) (wire.Limiter, error) {
	store, err := openMeteStore(s, "")
	if err != nil {
		return nil, err
	}
	return newMeteOn(store, s)
}

// newDurableMete uses the table of PostgreSQL that survives a crash.
func newDurableMete(s wire.Setup) (wire.Limiter, error) {
	store, err := openMeteStore(s, "&durable=true")
	if err != nil {
		return nil, err
	}
	return newMeteOn(store, s)
}

func newMeteOn(store mete.Store, s wire.Setup) (wire.Limiter, error) {
	l, err := mete.New(store, nil, mete.Config{Deadline: policy.MaxDeadline})
	if err != nil {
		return nil, err
	}
	m := &meteLimiter{Limiter: l}
	return m, m.Change(s.Limits)
}

// openMeteStore adds parameters to the URL of PostgreSQL.
func openMeteStore(s wire.Setup, parameters string) (mete.Store, error) {
	switch ctx := context.Background(); {
	case s.Postgres != "":
		return pgstore.Open(ctx, s.Postgres+parameters)
	case len(s.Sentinels) > 0:
		return redisstore.Open(ctx, "redis+sentinel://"+strings.Join(s.Sentinels, ",")+"/"+s.Master)
	case s.Redis != "":
		return redisstore.Open(ctx, "redis://"+s.Redis)
	default:
		return memstore.New(memstore.Config{MaxKeys: s.MaxKeys})
	}
}

func (m *meteLimiter) Take(ctx context.Context, keys []string) (bool, time.Duration, error) {
	var charges []mete.Charge
	for i, limit := range m.limits.get() {
		if keys[i] != "" {
			charges = append(charges, mete.Charge{Key: fmt.Sprint(i, ":", keys[i]), Limit: limit, Cost: 1})
		}
	}
	d, err := m.Limiter.Take(ctx, mete.Request{Charges: charges})
	if err == nil && d.Degraded {
		err = errors.Join(errors.New("the store failed"), d.Err)
	}
	return d.Allowed, d.RetryAfter, err
}

func (m *meteLimiter) Change(limits []wire.Limit) error {
	var all []bucket.Limit
	for _, l := range limits {
		limit, err := bucket.NewLimit(bucket.Tokens(l.Capacity)*bucket.Token, bucket.Rate{Tokens: bucket.Tokens(l.Capacity) * bucket.Token, Per: l.Period})
		if err != nil {
			return err
		}
		all = append(all, limit)
	}
	m.limits.set(all)
	return nil
}
