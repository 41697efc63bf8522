// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// isOutage reports whether nodes of the world decide alone while the store does not answer.
func (k worldKind) isOutage() bool {
	return k == outageWorld || k == singleWorld || k == transactionsWorld
}

// isExact reports whether nothing refills.
func (k worldKind) isExact() bool { return k == exactWorld || k == shardsWorld || k.isOutage() }

// A sharder is a node's connection to the store in the world of shards. It divides the limit a among three buckets, by the
// real code. The limiter does the same with a limit that has shards, but chooses among them at random.
type sharder struct {
	*shards.Store
	wire *wire
}

func newSharder(w *wire, seed uint64) *sharder {
	return &sharder{shards.New(w, rand.New(rand.NewPCG(seed, uint64(w.node.number))).IntN), w}
}

// Unwrap returns the wire, which knows about transactions and the secret of hash keys.
func (s *sharder) Unwrap() mete.Store { return s.wire }

// Take implements [store.Store].
func (s *sharder) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	charges = slices.Clone(charges)
	for i := range charges {
		if strings.HasPrefix(charges[i].Key, "a:") {
			charges[i].Shards = 3
		}
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

// isMarker reports whether a charge is the marker of an ID, which refills after some minutes.
func isMarker(c *store.Charge) bool { return strings.HasPrefix(c.Key, shards.Mark) }

// overrideMatches are matches of an override that replaces a limit. Some of them distinguish requests without the
// header from requests with an empty one, although both have the same bucket. A policy with such an override is invalid.
var overrideMatches = [...]string{`"*"`, `"0"`, `{"not": "0"}`, `{"not": "*"}`, `["0", "1"]`, `""`}

// overridden returns a policy with a random override of a limit, or without it if that is invalid.
func overridden(r *rand.Rand) *policy.Matcher {
	const rules = `{"rules": [{"name": "a", "limit_keys": ["header:a"], "on_missing": "empty", "on_store_error": "closed",
		"algorithm_config": {"rate": "20/1s", "burst": 20, "max_reserved": 10}}]%s}`
	override := fmt.Sprintf(`, "overrides": [{"id": "o", "action": "limit", "rules": ["a"], "match": {"header:a": %s}, "reason": "test", "author": "test",
		"algorithm_config": {"rate": "5/1s", "burst": 10}, "expires_at": "2099-01-01T00:00:00Z"}]`, overrideMatches[r.IntN(len(overrideMatches))])
	m, err := policy.Load(fmt.Appendf(nil, rules, override), policy.Options{})
	if err == nil {
		return m
	}
	if m, err = policy.Load(fmt.Appendf(nil, rules, ""), policy.Options{}); err != nil {
		panic(err)
	}
	return m
}

// addOwnCharges adds charges of the program itself to a request, in any order.
func (c *client) addOwnCharges(r *rand.Rand) {
	for i := range 2 {
		c.request.Charges = append(c.request.Charges, mete.Charge{Key: fmt.Sprintf("own-%d", r.IntN(2)+2*i), Limit: ownLimit, Cost: mete.Tokens(1 + r.IntN(3)), Fixed: true})
	}
}

var ownLimit = func() bucket.Limit {
	l, err := bucket.NewLimit(15*bucket.Token, bucket.Rate{Tokens: bucket.Token, Per: 1000 * time.Hour})
	if err != nil {
		panic(err)
	}
	return l
}()

// retried returns a request for its repetition. A program may add its charges from a map, so their order is another one.
func retried(req mete.Request) mete.Request {
	req.Charges = slices.Clone(req.Charges)
	slices.Reverse(req.Charges)
	return req
}

// countGranted records a decision for a single node, and checks that outages do not exceed the bound: the node knows of all costs.
// A client counts once, because its repeated request is the same work.
func (s *simulation) countGranted(c *client, d *mete.Decision) {
	if s.plan.world != singleWorld || !d.Allowed {
		return
	}
	limits := d.Limits()
	for i := range limits {
		st := &limits[i]
		if st.Rule.Name == "s" {
			continue
		}
		by, all := payment{c.number, st.Key}, payment{0, st.Key}
		if more := st.Cost - s.ledger.granted[by]; more > 0 {
			s.ledger.granted[by] += more
			s.ledger.granted[all] += more
		}
		if total := s.ledger.granted[all]; total > st.Limit.Bucket.Capacity() {
			s.ledger.fault("G1: the only node admits %v from %s, with a capacity of %v", total, st.Key, st.Limit.Bucket.Capacity())
		}
	}
}

// checkChange checks that a changed limit keeps the missing amount: the debt up to the new debt limit, and otherwise at most
// the new capacity. A full bucket is full under each limit, as a new one is: see G5.
func (s *simulation) checkChange(r *rand.Rand) {
	at := r.Perm(len(versions))
	old, next := s.start(), s.start()
	for i, n := range []*node{old, next} {
		m, err := policy.Load([]byte(versions[at[i]]), policy.Options{})
		if err != nil {
			panic(err)
		}
		if err := n.limiter.SetPolicy(m); err != nil {
			panic(err)
		}
	}
	req := mete.Request{Attributes: mete.Attrs{"header:a": "9"}}
	for range r.IntN(12) {
		req := req
		req.Cost, req.MaxWait = mete.Tokens(1+r.IntN(8)), time.Duration(r.IntN(2000))*time.Millisecond
		s.call(func() {
			if _, err := old.limiter.Reserve(context.Background(), req); err != nil {
				panic(err)
			}
		})
	}
	peek := func(n *node) (st mete.Status) {
		s.call(func() {
			if d, err := n.limiter.Peek(context.Background(), req); err == nil && !d.Degraded {
				st = d.Limits()[0]
			}
		})
		return st
	}
	idle := time.Duration(r.Int64N(int64(2*peek(old).FullAfter() + time.Microsecond)))
	s.sleep(idle)
	before := peek(old)
	if before.Limit == nil || before.Limit.Bucket.Algorithm() != bucket.AlgorithmContinuous && before.FullAfter() > 0 {
		return // the share of the previous window that still counts is not in the answer
	}
	after, now := peek(next), s.now()
	if from := before.Limit.Bucket.Capacity(); now == s.now() && after.Limit != nil {
		l, missing := after.Limit.Bucket, before.Missing()
		want := min(missing, from, l.Capacity()) + min(max(missing-from, 0), l.MaxReserved())
		if before.FullAfter() == 0 {
			want = 0
		}
		if got := after.Missing(); got != want {
			s.ledger.fault("changed limit: the bucket misses %v of %v under version %d, and after %v %v under version %d, want %v", missing, from, at[0], idle, got, at[1], want)
		}
	}
}
