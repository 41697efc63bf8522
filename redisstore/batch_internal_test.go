// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
	"github.com/redis/rueidis"
)

// TestBatch_IsAsOneByOne sends random asks in batches, and compares each answer with the model's, which gets them
// one by one.
func TestBatch_IsAsOneByOne(t *testing.T) {
	t.Parallel()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{proctest.StartRedis(t).Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			clock := storetest.NewClock()
			s, err := New(client, Config{Prefix: fmt.Sprintf("batch%d:", seed), Now: clock.Now, Timeout: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(testseed.PCG(seed, 11))
			b := batches{T: t, Rand: r, store: s, model: storetest.NewModel(clock.Now), plain: seed%3 == 0}
			b.limits = b.someLimits()
			for range 60 {
				step := b.Int64N(1 << (1 + b.IntN(23)))
				if b.IntN(10) == 0 {
					step = -step / 4
				}
				clock.Advance(step)
				b.send(b.someAsks())
				if t.Failed() {
					return
				}
			}
		})
	}
}

// batches are the asks of one store and its model.
type batches struct {
	*testing.T
	*rand.Rand
	store  *Store
	model  *storetest.Model
	limits []bucket.Limit
	plain  bool // only plain takes of token buckets

	admitted [][]mete.Refund // can be canceled
}

// someLimits returns limits. Some of them share everything except the capacity and the interval.
func (b *batches) someLimits() []bucket.Limit {
	var limits []bucket.Limit
	for len(limits) < 8 {
		spec := bucket.Spec{
			Capacity: bucket.Tokens(1 + b.Int64N(1<<(1+b.IntN(16)))),
			Rate:     bucket.Rate{Tokens: bucket.Tokens(1 + 30*b.Int64N(170)), Per: time.Duration(1+b.IntN(4)) * 300 * time.Millisecond}, // in lowest terms
		}
		if kind := len(limits) / 2; !b.plain && kind > 0 {
			spec.Algorithm = bucket.Algorithm(kind)
		}
		if spec.Algorithm == bucket.AlgorithmStepped {
			spec.Anchor = bucket.Anchor(b.IntN(2)) * bucket.AnchorFirst
		}
		if spec.Algorithm >= bucket.AlgorithmSlidingWindow {
			spec.Capacity = 0
		} else if owed := bucket.Tokens(b.IntN(5000)); b.IntN(2) == 0 {
			spec.MaxReserved = &owed
		} else if !b.plain && b.IntN(3) == 0 {
			spec.Queue = 1 + owed
		}
		l, _, err := spec.Compile()
		if err != nil {
			b.Fatal(err)
		}
		limits = append(limits, l)
		if spec.Algorithm < bucket.AlgorithmSlidingWindow {
			if b.IntN(3) == 0 {
				spec.Rate.Per *= 2
			}
			spec.Capacity += bucket.Tokens(b.IntN(5000))
			if l, _, err = spec.Compile(); err != nil {
				b.Fatal(err)
			}
			limits = append(limits, l)
		}
	}
	return limits
}

// someAsks returns asks. Many of them use the same buckets.
func (b *batches) someAsks() []*ask {
	var asks []*ask
	last := []store.Charge{}
	for range 1 + b.IntN(30) {
		op, mode := opTake, mete.Mode{}
		if b.IntN(3) > 0 || len(last) == 0 {
			last = b.someCharges()
		}
		if !b.plain && b.IntN(3) == 0 {
			op, mode = b.someMode()
		}
		if op == opGiveBack {
			asks = append(asks, newRefund(b.someRefunds(last)))
			continue
		}
		asks = append(asks, newAsk(op, last, mode))
		if mode.ID != "" && !mode.DryRun {
			asks[len(asks)-1].memory = b.store.memoryKey(mode.ID, last, last[0].Key)
		}
	}
	return asks
}

func (b *batches) someMode() (op int, mode mete.Mode) {
	switch b.IntN(6) {
	case 0:
		return opGiveBack, mode
	case 1:
		mode.UpTo = true
	case 2:
		mode.MaxWait = time.Duration(1+b.IntN(3000)) * time.Millisecond
	case 3:
		mode.MaxWait = bucket.Forced
	case 4:
		mode.DryRun = true
	}
	if b.IntN(2) == 0 {
		mode.ID = fmt.Sprint("id", b.IntN(3))
	}
	return opTake, mode
}

// someRefunds returns an admin refund of charges, or cancels a take.
func (b *batches) someRefunds(charges []store.Charge) []mete.Refund {
	if len(b.admitted) == 0 || b.IntN(3) == 0 {
		return storetest.Refunds(charges...)
	}
	at := len(b.admitted) - 1 - b.IntN(min(len(b.admitted), 10))
	refunds := b.admitted[at]
	b.admitted = slices.Delete(b.admitted, at, at+1)
	for i := range refunds {
		if b.IntN(3) == 0 {
			refunds[i].Cost = bucket.Tokens(b.Int64N(int64(refunds[i].Cost) + 1))
		}
	}
	return refunds
}

func (b *batches) someCharges() []store.Charge {
	var charges []store.Charge
	for _, k := range b.Perm(4)[:1+max(b.IntN(6)-3, 0)] {
		l := b.limits[k*len(b.limits)/4]
		if b.IntN(4) == 0 {
			l = b.limits[b.IntN(len(b.limits))]
		}
		cost := bucket.Tokens(b.Int64N(int64(l.Capacity())/4 + 2))
		if b.IntN(10) == 0 {
			cost = bucket.Tokens(b.Int64N(2 * int64(l.Capacity())))
		}
		charges = append(charges, store.Charge{Key: fmt.Sprint("k", k), Limit: l, Cost: cost})
	}
	slices.SortFunc(charges, func(a, b store.Charge) int { return strings.Compare(a.Key, b.Key) })
	return charges
}

// send gets the answers to the asks in as few calls as possible.
func (b *batches) send(asks []*ask) {
	for len(asks) > 0 {
		b.store.mixed.Store(0) // so that plain asks stay plain
		var p program
		p.reset(b.store.config.Prefix, b.store.now())
		n := 0
		for n < len(asks) && p.add(asks[n]) {
			n++
		}
		b.store.run(&p, b.store.config.Timeout)
		for i, a := range asks[:n] {
			b.compare(fmt.Sprintf("ask %d of %d", i, n), a)
		}
		asks = asks[n:]
	}
}

func (b *batches) compare(name string, a *ask) {
	if a.Err != nil {
		b.Errorf("%s: %+v %+v: %v", name, a.charges, a.mode, a.Err)
		return
	}
	if a.op == opGiveBack {
		var refunds []mete.Refund
		for i, c := range a.charges {
			refunds = append(refunds, mete.Refund{Charge: c, Taken: a.taken[i]})
		}
		if err := b.model.Refund(context.Background(), refunds, ""); err != nil {
			b.Error(err)
		}
		return
	}
	if a.allowed && !a.mode.DryRun {
		var refunds []mete.Refund
		for i, c := range a.charges {
			refunds = append(refunds, mete.Refund{Charge: c, Taken: a.snaps[i].Taken()})
			refunds[i].Cost = a.snaps[i].Cost
		}
		b.admitted = append(b.admitted, refunds)
	}
	want, allowed, err := b.model.Take(context.Background(), nil, a.charges, a.mode)
	if err != nil || a.allowed != allowed || !slices.Equal(a.snaps, want) {
		b.Errorf("%s: %+v %+v:\n got %v, %+v\nwant %v, %+v, %v", name, a.charges, a.mode, a.allowed, a.snaps, allowed, want, err)
	}
}
