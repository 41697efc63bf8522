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
	"github.com/metehq/mete/redisstore"
)

const (
	// connectPatience is how long a server that starts waits for its store: for
	// both to be started together.
	connectPatience = 10 * time.Second
	connectInterval = 250 * time.Millisecond

	// recoverInterval is how often it is tried to charge what was spent locally.
	recoverInterval = time.Second
)

// A remote is a store that other processes use, too, behind a guard.
type remote struct {
	*guard.Store
	node   *redisstore.Node
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
		if rule.OnStoreError == policy.Closed && !rule.Shadow {
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
	charges := []mete.Charge{{Key: "|probe", Limit: limit, Cost: 1}} // no policy's key begins with a bar
	for range guard.DefaultProbes {
		if r.State() == guard.Closed {
			return
		}
		if _, _, err := r.Take(ctx, nil, charges, mete.Mode{Within: policy.DefaultDeadline}); err != nil {
			return
		}
	}
}

// openRemote connects to a Redis.
func (s *Server) openRemote(ctx context.Context, u storeurl.Store) error {
	node, err := s.connect(ctx, u.Redis)
	if err != nil {
		return err
	}
	guarded, err := guard.New(node, guard.Config{OnChange: s.onBreaker, NoDenials: !s.config.DenialCache})
	if err == nil && s.config.HashKey == "" {
		var key [32]byte
		key, err = node.DeriveKey(ctx, hashPurpose)
		s.store.key = key[:]
		s.log.Warn("hash_key is not set: the key of the hashes in bucket keys is derived from a secret that lies in Redis beside them. " +
			"Set the same hash_key on all servers")
	}
	if err != nil {
		return errors.Join(err, node.Close())
	}
	s.store.remote = &remote{Store: guarded, node: node, policy: s.Policy}
	s.store.Store = s.store.remote
	s.log.Info("connected", "store", storeurl.Shown(u.Redis), "nodes", node.Nodes())
	return nil
}

// connect tries for a while, as long as nothing answers.
func (s *Server) connect(ctx context.Context, url string) (*redisstore.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	ticker := time.NewTicker(connectInterval)
	defer ticker.Stop()
	complain := s.complain("the store does not answer; trying again")
	for {
		node, err := redisstore.Open(ctx, url)
		if err == nil || !errors.Is(err, mete.ErrUnavailable) {
			return node, err
		}
		complain(err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-ticker.C:
		}
	}
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
	switch {
	case to == guard.Open && from == guard.Closed:
		s.log.Error("the store is not asked any more until it answers again; the rules say what happens then")
	case to == guard.Closed:
		s.log.Info("the store answers again")
	}
}
