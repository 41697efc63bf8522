// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease/leasetest"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/store"
)

// A simulation is one run of a schedule.
type simulation struct {
	plan    *schedule
	r       *rand.Rand // for nodes, not for steps
	store   *memstore.Store
	inner   store.Store // store, or a broken one, or the journal
	journal *journal    // in the world of transactions
	bank    *leasetest.Bank

	mu       sync.Mutex // guards the fields below
	offset   time.Duration
	jumps    []jump // of the clock, forward
	ledger   *ledger
	nodes    []*node
	crashed  []*node
	began    int
	clients  []*client
	born     map[int]bucket.Instant // when a client began
	messages []*message
	running  int

	operations int
	counts     counts // of events
	trace      uint64 // a hash of all events, to compare runs
}

type options struct {
	verbose bool
	bug     *sabotage
}

// An outcome is the result of a run.
type outcome struct {
	faults     []string
	operations int
	counts     counts
	trace      uint64
	log        []string
}

// now is the store's clock: bubble time plus an offset.
func (s *simulation) now() bucket.Instant { return bucket.At(time.Now()).Add(s.offset) }

// simulate runs a schedule in a bubble.
func simulate(t *testing.T, plan *schedule, o options) (out outcome) {
	synctest.Test(t, func(*testing.T) {
		s := &simulation{plan: plan, r: rand.New(rand.NewPCG(plan.seed, 1)), born: map[int]bucket.Instant{}, counts: counts{}}
		s.bank = &leasetest.Bank{Now: s.now}
		var err error
		if s.store, err = memstore.New(memstore.Config{Now: s.now}); err != nil {
			panic(err)
		}
		if s.inner = s.store; o.bug != nil {
			s.inner = &broken{s.store, o.bug}
		}
		if plan.world == transactionsWorld {
			s.journal = &journal{sim: s, made: s.now()}
			s.inner = s.journal
		}
		s.ledger = newLedger(s.now, plan.world.isExact())
		s.ledger.counts = s.counts
		s.ledger.oneLimit = plan.world == overridesWorld
		s.ledger.verbose = o.verbose
		for range plan.nodes {
			s.start()
		}
		for _, step := range plan.steps {
			s.take(step)
			synctest.Wait()
			if len(s.ledger.faults) > 0 {
				break
			}
		}
		s.settle()
		s.countLimits()
		out = outcome{s.ledger.faults, s.operations, s.counts, s.trace, s.ledger.log}
	})
	return out
}

// take executes one step.
func (s *simulation) take(st step) {
	r := rand.New(rand.NewPCG(st.seed, 2))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(uint64(st.kind), uint64(len(s.messages)), uint64(s.running), uint64(s.now()))
	switch st.kind {
	case request:
		n, times := s.nodes[r.IntN(len(s.nodes))], 1
		if s.plan.world == leaseWorld {
			times = 1 + r.IntN(16)
		}
		key := fmt.Sprint(r.IntN(2))
		for range times {
			c := s.newClient(r)
			if s.plan.world == leaseWorld {
				c.request.Attributes = mete.Attrs{"header:a": key} // a bucket is leased after eight takes in a period
			}
			s.born[c.number] = s.now()
			c.begin(n, r)
			s.wait() // one after another, so that their order is always the same
		}
	case proceed:
		n := s.nodes[r.IntN(len(s.nodes))]
		var idle []*client
		for _, c := range s.clients {
			if c.canProceed() {
				idle = append(idle, c)
			}
		}
		if len(idle) > 0 {
			idle[r.IntN(len(idle))].proceed(n, r)
		}
	case deliver:
		most := 4
		if s.plan.world == leaseWorld {
			most = 40
		}
		for range 1 + r.IntN(most) {
			if m := s.pick(r, s.canExecute); m != nil {
				s.execute(m)
				s.answer(m, m.err)
				s.wait()
			}
		}
	case execute:
		if m := s.pick(r, func(m *message) bool { return !m.executed && s.canExecute(m) }); m != nil {
			s.execute(m)
		}
	case answer:
		if m := s.pick(r, func(m *message) bool { return m.executed }); m != nil {
			s.answer(m, m.err)
		}
	case loseRequest:
		if m := s.pick(r, func(m *message) bool { return !m.executed }); m != nil {
			s.answer(m, lost("lost request"))
		}
	case loseAnswer:
		if m := s.pick(r, s.canExecute); m != nil {
			s.execute(m)
			s.answer(m, lost("lost answer"))
		}
	case advance:
		s.sleep(time.Duration(1+r.Int64N(1<<r.IntN(24))) * time.Microsecond)
	case stepClock:
		if s.stepsBack() && r.IntN(3) == 0 {
			s.offset -= time.Duration(r.Int64N(1_000_000)) * time.Microsecond
		} else {
			s.offset += s.boundJump(time.Duration(r.Int64N(3_000_000)) * time.Microsecond)
		}
	case partition:
		n := s.nodes[r.IntN(len(s.nodes))]
		n.cut = !n.cut
	case crash:
		if s.plan.world == singleWorld {
			return // it would not know its earlier costs
		}
		n := s.nodes[r.IntN(len(s.nodes))]
		s.crash(n)
		s.wait()
		s.start()
	case change:
		if n := s.nodes[r.IntN(len(s.nodes))]; s.plan.world == versionsWorld {
			if err := n.limiter.SetPolicy(s.plan.world.policy(r)); err != nil {
				panic(err)
			}
		}
	case recoverNode:
		n := s.nodes[r.IntN(len(s.nodes))]
		if n.limiter.Stats().Unsettled > 1 {
			return // Recover takes several keys in random order, so a run would not be repeatable
		}
		s.operations++
		s.running++
		go func() {
			_ = n.limiter.Recover(context.Background())
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
		}()
	}
}

// A jump is a forward step of the store's clock.
type jump struct {
	at time.Time
	by time.Duration
}

// boundJump returns the part of a jump that leases tolerate. If the clock of the store jumps by more than the grace while a
// node may spend leased tokens, the bound has an exception.
func (s *simulation) boundJump(by time.Duration) time.Duration {
	if s.plan.world != leaseWorld {
		return by
	}
	now, sum := time.Now(), time.Duration(0)
	for _, j := range s.jumps {
		if now.Sub(j.at) <= spendable {
			sum += j.by
		}
	}
	by = min(by, s.grace()-sum)
	s.jumps = append(s.jumps, jump{now, by})
	return by
}

// wait waits until all goroutines of the bubble are blocked. The caller holds the mutex. A nanosecond passes, so that two
// calls do not time out at one instant: two timers at one instant run in any order.
func (s *simulation) wait() {
	s.mu.Unlock()
	synctest.Wait()
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	s.mu.Lock()
}

// sleep advances the time of the bubble. The caller holds the mutex.
func (s *simulation) sleep(d time.Duration) {
	s.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
}

// pick returns one of the messages that fit, or nil.
func (s *simulation) pick(r *rand.Rand, fits func(*message) bool) *message {
	var some []*message
	for _, m := range s.messages {
		if fits(m) {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return nil
	}
	m := some[r.IntN(len(some))]
	s.note(uint64(m.client), uint64(m.number))
	return m
}

// note adds numbers to the hash of the run.
func (s *simulation) note(numbers ...uint64) {
	for _, n := range numbers {
		s.trace = (s.trace ^ n) * 0x100000001b3
		s.trace ^= s.trace >> 29
	}
}

// settle ends all faults, lets every client finish, and checks the end.
func (s *simulation) settle() {
	r := rand.New(rand.NewPCG(s.plan.seed, 3))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		n.cut = false
	}
	for rounds := 0; len(s.ledger.faults) == 0; rounds++ {
		s.deliverAll()
		if rounds > 1000 {
			s.ledger.fault("%d calls did not return", s.running)
		}
		if s.running > 0 {
			s.sleep(100 * time.Millisecond)
			continue
		}
		idle := 0
		for _, c := range s.clients {
			if c.canProceed() {
				idle++
				c.proceed(s.nodes[r.IntN(len(s.nodes))], r)
				s.wait()
			}
		}
		if idle == 0 {
			s.checkEnd()
			break
		}
	}
	s.end()
}

// deliverAll executes and answers messages until there are none, or none that can be executed.
func (s *simulation) deliverAll() {
	for {
		i := slices.IndexFunc(s.messages, s.canExecute)
		if i < 0 {
			return
		}
		m := s.messages[i]
		s.execute(m)
		s.answer(m, m.err)
		s.wait()
	}
}

// end ends all goroutines.
func (s *simulation) end() {
	var all sync.WaitGroup
	for _, n := range append(s.nodes, s.crashed...) {
		all.Go(n.stop)
	}
	for range 400 { // FinishSoon and Close end within half a minute
		s.deliverAll()
		s.sleep(100 * time.Millisecond)
	}
	s.deliverAll()
	s.mu.Unlock()
	defer s.mu.Lock()
	all.Wait()
}

// checkEnd checks the state after all clients have finished.
func (s *simulation) checkEnd() {
	for _, a := range s.ledger.buckets {
		s.ledger.checkBound(a)
	}
	if s.plan.world.isOutage() {
		s.checkRecovery()
	}
	ctx := context.Background()
	for key, want := range s.ledger.slots {
		held, now, err := s.store.Slots(ctx, key, 100)
		for _, slot := range held {
			if want[slot.ID] < now {
				s.ledger.fault("G13: the store holds slot %v of %s, which was released or has ended: %v", slot.ID, key, err)
			}
		}
	}
	s.sleep(time.Minute) // slots and holds end
	s.ledger.expireHolds()
	if s.plan.world == refillWorld {
		s.checkWait()
	}
	if s.plan.world == versionsWorld {
		s.checkChange(rand.New(rand.NewPCG(s.plan.seed, 5)))
	}
	for at, a := range s.ledger.buckets {
		if !s.ledger.exact {
			continue
		}
		s.ledger.compareMissing(a, s.peek(at.key, at.limit))
	}
	for key := range s.ledger.slots {
		if held, _, err := s.store.Slots(ctx, key, 10); err != nil || len(held) > 0 {
			s.ledger.fault("G13: %s still has %d slots: %v", key, len(held), err)
		}
	}
}

// checkWait checks that RetryAfter is exact: see G3. It uses a new node, because a denial from memory does not know of
// the costs of other nodes.
func (s *simulation) checkWait() {
	limiter := s.start().limiter
	s.sleep(time.Microsecond - time.Duration(time.Now().Nanosecond()%1000)) // the nanoseconds of the calls stay below one more
	take := func() (d mete.Decision) {
		s.call(func() {
			d, _ = limiter.Take(context.Background(), mete.Request{Attributes: mete.Attrs{"header:a": "0"}, Cost: 7})
		})
		return d
	}
	d := take()
	for d.Allowed {
		d = take()
	}
	if d.Degraded {
		return
	}
	s.sleep(d.RetryAfter - time.Microsecond)
	if d := take(); d.Allowed {
		s.ledger.fault("G3: admitted a microsecond before RetryAfter, %v", d.RetryAfter)
	}
	s.sleep(time.Microsecond)
	if d := take(); !d.Allowed {
		s.ledger.fault("G3: denied after RetryAfter: %+v", d)
	}
}

// call runs f and delivers all messages until it returns.
func (s *simulation) call(f func()) {
	done := false
	go func() {
		f()
		s.mu.Lock()
		done = true
		s.mu.Unlock()
	}()
	for s.wait(); !done; s.deliverAll() {
		if len(s.messages) == 0 {
			s.sleep(time.Millisecond) // a retry
		}
	}
}

// checkRecovery checks that each local token was charged once.
func (s *simulation) checkRecovery() {
	for _, n := range s.nodes {
		for range 3 {
			s.call(func() { _ = n.limiter.Recover(context.Background()) })
		}
		got := n.limiter.Stats()
		if sum := got.Charged + got.Refilled + got.Excess; got.SpentLocally != sum || got.Unsettled != 0 {
			s.ledger.fault("recovery: node %d spent %v, and charged %v, refilled %v, lost %v; %d keys are unsettled", n.number,
				got.SpentLocally, got.Charged, got.Refilled, got.Excess, got.Unsettled)
		}
	}
	if len(s.crashed) == 0 {
		var charged bucket.Tokens
		for _, n := range s.nodes {
			charged += n.limiter.Stats().Charged
		}
		if charged != s.ledger.recovered {
			s.ledger.fault("recovery: nodes charged %v, and the store was charged %v", charged, s.ledger.recovered)
		}
	}
}

func (o outcome) String() string {
	return fmt.Sprintf("%d operations, %v, %d faults", o.operations, o.counts, len(o.faults))
}
