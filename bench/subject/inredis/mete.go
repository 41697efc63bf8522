// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/redisstore"
)

// A connection is a redisstore with its client, and the limit that every key
// has.
type connection struct {
	client rueidis.Client
	store  *redisstore.Store
	limit  bucket.Limit
}

func connect(addr string, q subject.Quota) (*connection, error) {
	limit, err := bucket.NewLimit(bucket.Tokens(q.Capacity)*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: q.Every})
	if err != nil {
		return nil, err
	}
	options, config, err := redisstore.ParseURL("redis://" + addr)
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, err
	}
	store, err := redisstore.New(client, config)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &connection{client, store, limit}, nil
}

func (c *connection) close() {
	_ = c.store.Close()
	c.client.Close()
}

// charge appends to dst a charge of one token for each key.
func (c *connection) charge(dst []mete.Charge, keys []string, leased bool) []mete.Charge {
	for _, key := range keys {
		dst = append(dst, mete.Charge{Key: key, Limit: c.limit, Cost: bucket.Token, Leased: leased})
	}
	return dst
}

// newMeteStore measures the store alone.
func newMeteStore(leased bool) func(string, subject.Quota) (Limiter, error) {
	return func(addr string, q subject.Quota) (Limiter, error) {
		c, err := connect(addr, q)
		if err != nil {
			return Limiter{}, err
		}
		return Limiter{Caller: func() Take { return c.storeTake(leased) }, Close: c.close}, nil
	}
}

func (c *connection) storeTake(leased bool) Take {
	var charges []mete.Charge
	var snapshots []bucket.Snapshot
	return func(keys []string) (allowed bool, err error) {
		charges = c.charge(charges[:0], keys, leased)
		snapshots, allowed, err = c.store.Take(context.Background(), snapshots[:0], charges, mete.Mode{})
		if err == nil && len(snapshots) != len(keys) {
			err = fmt.Errorf("%d snapshots for %d charges", len(snapshots), len(keys))
		}
		return allowed, err
	}
}

// newMeteLimiter measures what a program calls: a limiter that decides by what
// its requests bring.
func newMeteLimiter(leased bool) func(string, subject.Quota) (Limiter, error) {
	return func(addr string, q subject.Quota) (Limiter, error) {
		c, err := connect(addr, q)
		if err != nil {
			return Limiter{}, err
		}
		limiter, err := mete.New(c.store, nil, mete.Config{Deadline: policy.MaxDeadline})
		if err != nil {
			c.close()
			return Limiter{}, err
		}
		return Limiter{Caller: func() Take { return c.limiterTake(limiter, leased) }, Close: c.close}, nil
	}
}

func (c *connection) limiterTake(limiter *mete.Limiter, leased bool) Take {
	var charges []mete.Charge
	return func(keys []string) (bool, error) {
		charges = c.charge(charges[:0], keys, leased)
		d, err := limiter.Take(context.Background(), mete.Request{Charges: charges})
		if err == nil && d.Degraded { // without the store, hence allowed
			err = d.Err
		}
		return d.Allowed, err
	}
}
