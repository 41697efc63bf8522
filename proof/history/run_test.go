// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

const clients = 16

// A world is a store with its faults.
type world struct {
	name     string
	stores   []store.Store // of the nodes, which share the state
	keys     []string
	slotKey  string
	versions bool // the limits of keys change
	slots    bool
	holds    bool
	single   bool                // each call has one key
	parts    bool                // takes of several keys are not one step
	each     int                 // operations of a client
	capacity int64               // of the first version of a limit, if it is not the usual one
	quiesce  func([]store.Store) // waits until the store has returned the costs of denied takes; nil if it does so at once
	rounds   bool                // each client calls once per round: calls of nanoseconds would hardly overlap otherwise
	faults   []fault             // one of them per run
	clock    *clock              // nil for the store's own clock

	// open returns new stores of all nodes. It is nil for memory.
	open func(t testing.TB, timeout time.Duration) []store.Store
}

// A fault breaks something during a run and repairs it. It runs in the goroutine of the test.
type fault struct {
	name   string
	effect effect
	run    func(*run)
}

// An effect classifies faults by the calls that fail.
type effect int

const (
	quiet    effect = iota // no call may fail
	harmless               // calls may fail, but usually none does
	breaking               // a call fails in at least one of several histories
)

// A run is a history in progress.
type run struct {
	testing.TB
	world   *world
	history *history
	limits  []bucket.Limit
	prefix  string     // of all keys and IDs, so that runs share a server
	rand    *rand.Rand // of the fault
	began   time.Time

	mu      sync.Mutex // guards the fields below, and history.ops
	changed *sync.Cond
	mix     *rand.Rand
	version int      // of the limits
	open    []string // holds
	ids     map[string]string
	done    int  // operations
	calls   int  // of clients
	idle    int  // clients that wait for the end of a fault, or have ended
	broken  bool // the fault lasts
	failed  bool // so that a call has failed
	quiet   bool // no call may fail

	loud, silent, nameless int // calls that may start: see begin
}

func newRun(t testing.TB, w *world, f *fault, seed uint64) *run {
	r := &run{TB: t, world: w, rand: rand.New(rand.NewPCG(seed, 1)), mix: rand.New(rand.NewPCG(seed, 2)), prefix: fmt.Sprintf("h%x:", seed), began: time.Now(), ids: map[string]string{}, loud: 8, silent: 3, nameless: 1}
	if r.quiet = f == nil || f.effect == quiet; w.open != nil { // a failed call has many explanations
		r.loud, r.silent = 4, 2
	}
	r.changed = sync.NewCond(&r.mu)
	r.history = &history{Title: w.name, Seed: seed, Limits: testLimits()}
	if w.capacity > 0 {
		r.history.Limits[0].Capacity = w.capacity + grain/2
	}
	if f != nil {
		r.history.Title += ", " + f.name
	}
	for _, l := range r.history.Limits {
		compiled, err := l.compile()
		if err != nil {
			t.Fatal(err)
		}
		r.limits = append(r.limits, compiled)
	}
	return r
}

// perform runs clients against the world, breaks it once, and returns the history. At the end each key is read once.
func perform(t testing.TB, w *world, f *fault, seed uint64) *history {
	t.Helper()
	if w.each == 0 {
		w.each = 8 // longer histories have too many explanations
	}
	if f != nil && f.effect == quiet && w.open != nil {
		nodes := &scope{TB: t}
		defer nodes.end()
		fresh := *w
		fresh.stores = w.open(nodes, time.Minute) // without broken connections, and patient on a slow machine
		w = &fresh
	}
	r := newRun(t, w, f, seed)
	var all sync.WaitGroup
	for i := range clients {
		c := r.client(i)
		all.Go(func() {
			for i := range w.each {
				if w.rounds {
					r.awaitRound(i)
				}
				c.do(c.next())
			}
			r.update(func() { r.idle++ })
		})
	}
	if f != nil {
		r.await(r.rand.IntN(clients * w.each / 2))
		r.update(func() { r.broken, r.failed = true, false })
		f.run(r)
		r.update(func() { r.broken = false })
	}
	all.Wait()
	if w.parts {
		w.quiesce(w.stores)
		r.history.Parts, r.history.Quiet = w.keys, r.now()
	}
	last := r.client(clients)
	for _, key := range w.keys {
		last.do(&op{Kind: peek, Charges: []charge{{Key: key, Cost: grain}}})
	}
	return r.history
}

// A scope is a part of a test that cleans up at its own end.
type scope struct {
	testing.TB
	ends []func()
}

func (s *scope) Cleanup(f func()) { s.ends = append(s.ends, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.ends) {
		f()
	}
}

func (r *run) client(i int) *client {
	return &client{run: r, number: i, store: r.world.stores[i%len(r.world.stores)], rand: rand.New(rand.NewPCG(r.history.Seed, uint64(100+i)))}
}

func (r *run) now() int64 { return time.Since(r.began).Nanoseconds() }

func (r *run) update(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	r.changed.Broadcast()
}

func (r *run) record(o *op) {
	r.update(func() {
		r.done++
		if o.Client < clients {
			r.calls++
			r.failed = r.failed || o.Answer.Err != "" && o.Answer.Err != errEnded
		}
		r.history.ops = append(r.history.ops, o)
		if r.mix.IntN(40) == 0 && r.world.versions {
			r.version = r.mix.IntN(slotVersion)
		}
		if o.Answer.Err != "" && o.Answer.Err != errEnded && r.quiet {
			r.Errorf("%s, seed %d: operation %v failed without a fault", r.history.Title, r.history.Seed, o)
		}
	})
}

// policy returns the current version of the limits. Now and then, a node has an older one.
func (r *run) policy() (version int) {
	r.update(func() {
		if version = r.version; r.mix.IntN(6) == 0 {
			version = r.mix.IntN(slotVersion)
		}
	})
	return version
}

// await waits for n more operations, or until no client can go on.
func (r *run) await(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for want := r.done + n; r.done < want && r.idle < clients; {
		r.changed.Wait()
	}
}

// awaitRound waits until all clients have made i calls.
func (r *run) awaitRound(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.calls < i*clients {
		r.changed.Wait()
	}
}

// awaitFailures waits until no client can go on.
func (r *run) awaitFailures() { r.await(1 << 40) }

// begin waits until an operation may start: not during a fault that has made a call fail. Each silent operation, and each one
// whose outcome stays unknown, doubles the possible explanations. The number of concurrent calls is therefore bounded, and more
// so if no retry explains them.
func (r *run) begin(o *op) (end func()) {
	bound := &r.loud
	if o.isSilent() && o.ID == "" && o.Kind != settle {
		bound = &r.nameless
	} else if o.isSilent() {
		bound = &r.silent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle++
	r.changed.Broadcast()
	for r.broken && r.failed || *bound == 0 {
		r.changed.Wait()
	}
	r.idle--
	*bound--
	return func() { r.update(func() { *bound++ }) }
}

// event records a change of the store itself, which happened while f ran.
func (r *run) event(k kind, amount int64, f func()) {
	o := &op{Client: clients + 1, Kind: k, Amount: amount, Call: r.now()}
	f()
	o.Return = r.now()
	r.record(o)
}

// addHold remembers an admitted hold, and its ID in the store. All clients may settle it.
func (r *run) addHold(name, id string) {
	r.update(func() {
		if r.ids[name] == "" {
			r.open = append(r.open, name)
		}
		r.ids[name] = id
	})
}

func (r *run) storeID(name string) (id string) {
	r.update(func() { id = r.ids[name] })
	return id
}

// anyHold returns a hold of any client, or an empty text.
func (r *run) anyHold(random *rand.Rand) (id string) {
	r.update(func() {
		if len(r.open) > 0 {
			id = r.open[random.IntN(len(r.open))]
		}
	})
	return id
}

// holdID returns the ID for a new hold: letters and digits.
func (r *run) holdID(name string) string { return fmt.Sprintf("%x", r.history.Seed) + name }
