// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Store is one of mete's stores with the limit of all keys.
type Store struct {
	store  mete.Store
	limit  bucket.Limit
	leased bool
}

// NewStore returns the store with a limit for every key. With leased, the store may lease tokens.
func NewStore(store mete.Store, q subject.Quota, leased bool) (*Store, error) {
	limit, err := bucket.NewLimit(bucket.Tokens(q.Capacity)*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: q.Every})
	return &Store{store, limit, leased}, err
}

// StoreTakes measures the store without a limiter.
func (s *Store) StoreTakes() func() Take {
	return func() Take {
		var charges []store.Charge
		var snapshots []bucket.Snapshot
		return func(keys []string) (allowed bool, err error) {
			charges = s.charge(charges[:0], keys)
			snapshots, allowed, err = s.store.Take(context.Background(), snapshots[:0], charges, mete.Mode{})
			if err == nil && len(snapshots) != len(keys) {
				err = fmt.Errorf("%d snapshots for %d charges", len(snapshots), len(keys))
			}
			return allowed, err
		}
	}
}

// LimiterTakes measures a limiter that decides by the charges of requests.
func (s *Store) LimiterTakes() (func() Take, error) {
	limiter, err := mete.New(s.store, nil, mete.Config{Deadline: policy.MaxDeadline})
	if err != nil {
		return nil, err
	}
	return func() Take {
		var charges []mete.Charge
		return func(keys []string) (bool, error) {
			charges = charges[:0]
			for _, key := range keys {
				charges = append(charges, mete.Charge{Key: key, Limit: s.limit, Cost: 1, Leased: s.leased})
			}
			d, err := limiter.Take(context.Background(), mete.Request{Charges: charges})
			if err == nil && d.Degraded { // without the store, and so allowed
				err = d.Err
			}
			return d.Allowed, err
		}
	}, nil
}

func (s *Store) charge(dst []store.Charge, keys []string) []store.Charge {
	for _, key := range keys {
		dst = append(dst, store.Charge{Key: key, Limit: s.limit, Cost: bucket.Token, Leased: s.leased})
	}
	return dst
}
