// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
)

// A node is a process with a Borrower and its clients.
type node struct {
	w        *world
	name     string
	borrower *lease.Borrower
	config   lease.Config
	alive    bool
	began    time.Duration // offset of its clock
	drift    int64         // drift of its clock, in millionths
	spent    bucket.Tokens
}

var (
	errTimeout  = errors.New("timeout")
	errNoAnswer = errors.New("no answer")
)

// noLender is a Lender for nodes with loans that go through the world.
type noLender struct{ lease.Lender }

// start adds a node.
func (w *world) start(config lease.Config) *node {
	w.began++
	n := &node{
		w: w, name: fmt.Sprintf("node%d", w.began), alive: true,
		began: time.Duration(w.r.Int64N(int64(time.Hour))), drift: w.r.Int64N(401) - 200,
	}
	config.Lender, config.Node, config.Now = noLender{}, n.name, n.clock
	b, err := lease.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	b.Drive(n.send)
	n.borrower, n.config = b, config
	if n.config.Period == 0 {
		n.config.Period, n.config.TTL = 100*time.Millisecond, time.Second
	}
	w.nodes = append(w.nodes, n)
	w.after(n.config.Period, n.tick)
	return n
}

// clock is the node's own.
func (n *node) clock() time.Duration {
	return n.began + n.w.now + n.w.now/1_000_000*time.Duration(n.drift)
}

func (n *node) owns(holder string) bool { return strings.HasPrefix(holder, n.name+".") }

func (n *node) tick() {
	if n.alive {
		n.borrower.Tick(n.clock())
		n.w.after(n.config.Period, n.tick)
	}
}

// crash ends the node without returning leases.
func (n *node) crash() {
	n.alive = false
	for i, m := range n.w.nodes {
		if m == n {
			n.w.nodes = append(n.w.nodes[:i:i], n.w.nodes[i+1:]...)
			return
		}
	}
}

// every runs a client repeatedly for d, while the node lives.
func (n *node) every(gap, d time.Duration, takes int, cost bucket.Tokens) {
	until := n.w.now + d
	var next func()
	next = func() {
		if !n.alive || n.w.now >= until {
			return
		}
		for range takes {
			n.take(cost)
		}
		n.w.after(time.Duration(float64(gap)*n.w.r.ExpFloat64())+time.Microsecond, next)
	}
	n.w.after(gap, next)
}

// take is one request.
func (n *node) take(cost bucket.Tokens) bool {
	w := n.w
	snap, lot, ok := n.borrower.Take(key, &w.limit, cost)
	if !ok {
		w.after(w.delay(), func() { w.take(cost) })
		return false
	}
	if !snap.Allowed || snap.Cost != cost || snap.Limit != w.limit || snap.Remaining() > w.limit.Capacity() {
		w.t.Fatalf("%v: %s: snapshot %+v of a take of %v", w.now, n.name, snap, cost)
	}
	at := len(w.record)
	w.record = append(w.record, happening{at: w.bucketTime(), amount: cost})
	w.spent += cost
	n.spent += cost
	if w.r.Float64() < w.chance.untake {
		w.after(w.delay(), func() { n.untake(lot, at, cost) })
	}
	return true
}

// untake undoes a request that another bucket has denied.
func (n *node) untake(lot lease.Lot, at int, cost bucket.Tokens) {
	switch {
	case !n.alive:
	case lot.Untake():
		n.w.record[at].canceled = true
		n.w.spent -= cost
		n.spent -= cost
	default:
		n.w.refund(cost)
	}
}

// delay returns the latency of a message.
func (w *world) delay() time.Duration {
	return 100*time.Microsecond + time.Duration(w.r.ExpFloat64()*float64(400*time.Microsecond))
}

// send transmits a loan to the store and its answer back, or loses them.
func (n *node) send(loan lease.Loan, answer func(lease.Grant, error)) {
	w, done := n.w, false
	reply := func(g lease.Grant, err error) {
		if done || !n.alive {
			return
		}
		if done = true; err != nil {
			w.failed++
		} else {
			w.answered++
		}
		answer(g, err)
	}
	w.after(n.config.TTL, func() { reply(lease.Grant{}, errTimeout) })
	if w.refuse || w.r.Float64() < w.chance.loseRequest {
		if w.refuse || w.r.IntN(2) == 0 { // and the node learns of it
			w.after(w.delay(), func() { reply(lease.Grant{}, errNoAnswer) })
		}
		return
	}
	there := max(w.delay(), w.held-w.now)
	if w.r.Float64() < w.chance.late {
		there += time.Duration(w.r.Int64N(int64(8 * time.Second))) // longer than the lifetime of an entry
	}
	w.after(there, func() {
		g, err := w.borrow(loan)
		if done {
			w.unknown += g.Tokens // it came too late
		}
		if w.r.Float64() < w.chance.loseReply {
			w.unknown += g.Tokens
			w.after(w.delay(), func() { reply(lease.Grant{}, errNoAnswer) })
			return
		}
		w.after(w.delay(), func() { reply(g, err) })
	})
}
