// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A node is a process with the real limiter.
type node struct {
	sim      *simulation
	number   int
	limiter  *mete.Limiter
	borrower *lease.Borrower
	calls    map[payment]int // of each client, and of the node for each key
	dead     bool            // crashed
	cut      bool            // does not reach the store
}

// policy returns a policy of a kind of world.
func (k worldKind) policy(r *rand.Rand) *policy.Matcher {
	rules := k.rules()
	switch k {
	case versionsWorld:
		rules = versions[r.IntN(len(versions))]
	case overridesWorld:
		return overridden(r)
	}
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		panic(err)
	}
	return m
}

// versions are limits of one bucket. A bucket has at most three at a time.
var versions = [...]string{
	`{"rules": [{"name": "a", "limit_keys": ["header:a"], "on_store_error": "closed", "algorithm_config": {"rate": "20/1s", "burst": 20}}]}`,
	`{"rules": [{"name": "a", "limit_keys": ["header:a"], "on_store_error": "closed", "algorithm_config": {"rate": "90/1m", "burst": 30, "max_reserved": 15}}]}`,
	`{"rules": [{"name": "a", "limit_keys": ["header:a"], "on_store_error": "closed", "algorithm": "sliding_window", "algorithm_config": {"tokens": 20, "window": "3s"}}]}`,
}

func (k worldKind) rules() string {
	rateA, rateB, more := "1/1000h", "1/1000h", `"on_store_error": "closed"`
	switch k {
	case refillWorld:
		rateA, rateB = "20/1s", "7/3s"
	case outageWorld, singleWorld, transactionsWorld:
		more = `"on_store_error": "local"`
	case leaseWorld:
		return `{"rules": [{"name": "a", "limit_keys": ["header:a"], "on_store_error": "closed", "algorithm_config": {"rate": "20/1s", "burst": 400, "leased": true}}]}`
	}
	return fmt.Sprintf(`{"rules": [
		{"name": "a", "limit_keys": ["header:a"], %[3]s, "algorithm_config": {"rate": %[1]q, "burst": 20, "max_reserved": 10}},
		{"name": "b", "limit_keys": ["header:b"], %[3]s, "algorithm_config": {"rate": %[2]q, "burst": 12}},
		{"name": "s", "limit_keys": ["header:s"], "on_store_error": "closed", "algorithm": "concurrency", "max": 3, "lease": "5s"},
		{"name": "shadow", "limit_keys": [], "mode": "shadow", "algorithm_config": {"rate": %[1]q, "burst": 9}}]}`, rateA, rateB, more)
}

// policy returns the policy of a new node. All nodes have the same override.
func (s *simulation) policy() *policy.Matcher {
	r := s.r
	if s.plan.world == overridesWorld {
		r = rand.New(rand.NewPCG(s.plan.seed, 4))
	}
	return s.plan.world.policy(r)
}

// start adds a node.
func (s *simulation) start() *node {
	s.began++
	n := &node{sim: s, number: s.began, calls: map[payment]int{}}
	skew := time.Duration(s.r.Int64N(int64(20*time.Second))) - 10*time.Second
	config := mete.Config{
		Nodes: func() int { return s.plan.nodes },
		Now:   func() bucket.Instant { return bucket.At(time.Now()).Add(skew) },
	}
	if s.r.IntN(2) == 0 {
		config.DenyFor, config.DenyKeys = time.Second, 64
	}
	local, err := memstore.New(memstore.Config{Now: config.Now})
	if err != nil {
		panic(err)
	}
	if s.plan.world.isOutage() || s.plan.seed/8%8 == 0 { // its memory is large, so most runs have none
		config.Local = local
	}
	var inner store.Store = &wire{n, s.inner}
	if s.plan.world == shardsWorld {
		inner = newSharder(&wire{n, s.inner}, s.plan.seed)
	}
	if n.limiter, err = mete.New(inner, s.policy(), config); err != nil {
		panic(err)
	}
	if s.plan.world == leaseWorld {
		// No multiple of the period is the timeout of a loan: two timers at one instant run in any order.
		if n.borrower, err = lease.New(lease.Config{Lender: lender{&wire{n, s.inner}}, Node: fmt.Sprintf("node%d", n.number), Period: 97 * time.Millisecond, TTL: spendable, Grace: s.grace()}); err != nil {
			panic(err)
		}
	}
	s.nodes = append(s.nodes, n)
	return n
}

// crash ends a node. Messages that it has sent may still arrive. The caller holds the mutex.
func (s *simulation) crash(n *node) {
	n.dead = true
	var waiting []*message
	for _, m := range s.messages {
		if m.node == n && !m.orphan {
			m.orphan = true
			waiting = append(waiting, m)
		}
	}
	for _, m := range waiting {
		m.reply <- lost("crashed")
		if m.executed {
			s.remove(m)
		}
		s.wait()
	}
	for at, other := range s.nodes {
		if other == n {
			s.nodes = append(s.nodes[:at:at], s.nodes[at+1:]...)
			break
		}
	}
	s.crashed = append(s.crashed, n)
}

// stop ends the goroutines of a node.
func (n *node) stop() {
	if n.borrower != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = n.borrower.Close(ctx)
	}
}

// spendable is how long a node may spend leased tokens.
const spendable = time.Second

// grace is how much longer the store keeps their entry. It is as short as a jump of the clock in half of the runs, so that
// entries end while a node still has tokens.
func (s *simulation) grace() time.Duration {
	if s.plan.seed%2 == 0 {
		return time.Millisecond
	}
	return 4 * time.Second
}

// A lender is the store's side of leases.
type lender struct{ wire *wire }

func (l lender) Borrow(ctx context.Context, loan lease.Loan) (grant lease.Grant, err error) {
	run := func() error {
		grant, err = l.wire.node.sim.bank.Borrow(context.Background(), loan)
		if grant.Tokens > 0 {
			l.wire.node.sim.counts["loans"]++
		}
		if err == nil { // the node may spend the tokens after the clock has stepped back
			a := l.wire.node.sim.ledger.account(&store.Charge{Key: loan.Key, Limit: loan.Limit})
			a.time = max(a.time, grant.State.AsOf)
		}
		l.wire.node.sim.ledger.note("node %d borrows %+v: %+v, %v", l.wire.node.number, loan, grant, err)
		return err
	}
	err = l.wire.send(ctx, &message{key: loan.Key, run: run}, "borrow", 0)
	return grant, err
}

// takeLeased takes from the node's lease, or from the store.
func (w *wire) takeLeased(ctx context.Context, dst []bucket.Snapshot, c store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	s := w.node.sim
	client, _ := ctx.Value(clientKey{}).(int)
	if !mode.DryRun {
		if snap, _, ok := w.node.borrower.Take(c.Key, &c.Limit, c.Cost); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			a := s.ledger.account(&c)
			s.ledger.paid[payment{client, c.Key}] += c.Cost
			a.add(&entry{client: client, cost: c.Cost}, s.now())
			s.counts["leased"]++
			s.ledger.note("client %d takes %v of %s from the lease of node %d", client, c.Cost, c.Key, w.node.number)
			return append(dst, snap), true, nil
		}
	}
	var snap bucket.Snapshot
	err := w.call(ctx, "take", mode.Within, func() error {
		if mode.DryRun {
			c.Cost = 0
		}
		if snap = s.bank.Take(c.Key, &c.Limit, c.Cost); snap.Allowed && c.Cost > 0 {
			s.ledger.spend(client, &c, &snap, mode)
			s.ledger.note("client %d takes %v of %s from the store", client, c.Cost, c.Key)
		}
		return nil
	})
	if err != nil {
		return dst, false, err
	}
	return append(dst, snap), snap.Allowed, nil
}
