// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// recoverInterval is how often it is tried to charge what was spent locally.
const recoverInterval = time.Second

// denyFor is how long the server denies from memory after a remote store has denied.
const denyFor = time.Second

// A remote is a store that other processes use, too, behind a guard.
type remote struct {
	*guard.Store
	node   node
	policy func() *policy.Matcher
}

// Ping is what /readyz goes by. A store that does not answer is a reason to send
// traffic elsewhere only where rules refuse what it does not decide: for all
// others this server is as good as any, and the store is the same for all.
func (r *remote) Ping(ctx context.Context) error {
	err := r.Store.Ping(ctx)
	if err == nil {
		return nil
	}
	for _, rule := range r.policy().Rules() {
		if rule.OnStoreError == policy.StoreErrorClosed && rule.Mode < policy.ModeShadow {
			return err
		}
	}
	return nil
}

// probe takes from a bucket that nothing else uses while the breaker is not closed:
// where no traffic tries the store, it would else be said to be ill for good.
func (r *remote) probe(ctx context.Context) {
	limit, err := bucket.NewLimit(bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: time.Second})
	if err != nil {
		return
	}
	charges := []store.Charge{{Key: policy.OwnKeyPrefix("probe"), Limit: limit, Cost: 1}}
	for range guard.DefaultProbes {
		if r.State() == guard.Closed {
			return
		}
		if _, _, err := r.Take(ctx, nil, charges, mete.Mode{Within: policy.DefaultDeadline}); err != nil {
			return
		}
	}
}

// openRemote connects to the store that the settings name.
func (s *Server) openRemote(ctx context.Context, u *storeurl.URL) error {
	node, err := s.connect(ctx, u)
	if err != nil {
		return err
	}
	guarded, err := guard.New(s.timed(node), guard.Config{OnChange: s.onBreaker})
	if err == nil && s.config.HashKey == "" {
		err = s.deriveKey(ctx, node, u.Scheme.Name())
	}
	if err != nil {
		return errors.Join(err, node.Close())
	}
	s.store.remote = &remote{Store: guarded, node: node, policy: s.Policy}
	s.store.Store = s.store.remote
	s.log.Info("connected", "store", u.String(), "nodes", node.Nodes())
	return nil
}

// denyFor returns how long the server denies from memory, 0 for not at all.
func (s *Server) denyFor() time.Duration {
	if s.store.remote == nil || !s.config.DenialCache {
		return 0
	}
	return denyFor
}

// deriveKey has the store's own secret stand in for the hash_key that is not set.
func (s *Server) deriveKey(ctx context.Context, node node, kind string) error {
	key, err := node.DeriveKey(ctx, policy.HashPurpose)
	if err != nil {
		return err
	}
	s.store.key = key[:]
	s.log.Warn("hash_key is not set: the key of the hashes in bucket keys is derived from a secret that lies in " + kind +
		" beside them. Set the same hash_key on all servers")
	return nil
}

// recoverLoop charges to the store what was spent in its place, soon after it
// answers again, and once more at the end.
func (s *Server) recoverLoop(ctx context.Context) {
	if s.store.remote == nil {
		return
	}
	ticker := time.NewTicker(recoverInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		s.store.remote.probe(ctx)
		_ = s.limiter.Recover(ctx) // there is a next time
	}
}

// recoverLast charges what is still to be charged before the server ends.
func (s *Server) recoverLast() {
	if s.store.remote == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), recoverInterval)
	defer cancel()
	if err := s.limiter.Recover(ctx); err != nil {
		s.log.Warn("what was spent while the store did not answer is not charged there", "error", err, "keys", s.limiter.Stats().Unsettled)
	}
}

// onBreaker logs what becomes of the breaker. Half open is a moment.
func (s *Server) onBreaker(from, to guard.State) {
	if from == guard.Closed || to == guard.Closed { // between, the store is tried, in the same outage
		s.lately.outage.Store(time.Now().UnixNano())
	}
	switch {
	case to == guard.Open && from == guard.Closed:
		s.log.Error("the store is not asked any more until it answers again; the rules say what happens then")
	case to == guard.Closed:
		s.log.Info("the store answers again")
	}
}
