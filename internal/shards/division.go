// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"slices"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/store"
)

// A division is one request with sharded charges, and the known state of its buckets.
type division struct {
	asked   []store.Charge
	charges []store.Charge // asked, with the costs to take
	shares  []share        // shares[i] belongs to charges[i]
	mode    store.Mode
	random  func(n int) int
	wait    time.Duration // the longest wait that the shards may cause
	begun   time.Time     // if mode has a Within

	marker   marker
	replayed bool // the marker shows that the take was admitted before
}

// A share is the known state of one charge.
type share struct {
	snap    bucket.Snapshot // of an unsharded bucket
	numbers []int           // of the chosen shards
	shards  bucket.Shards   // shards[i] is shard numbers[i]
}

// newDivision returns a division with two random shards of every sharded bucket.
func newDivision(charges []store.Charge, mode store.Mode, random func(n int) int) *division {
	d := &division{
		asked:   charges,
		charges: slices.Clone(charges),
		shares:  make([]share, len(charges)),
		mode:    mode,
		random:  random,
	}
	if mode.Within > 0 {
		d.begun = time.Now()
	}
	if mode.ID != "" && !mode.DryRun {
		d.marker = newMarker(mode, charges)
	}
	for i := range d.shares {
		d.shares[i].choose(charges[i].Shards, 2, random)
	}
	return d
}

func (d *division) remainingTime() time.Duration {
	if d.mode.Within <= 0 {
		return 0
	}
	return max(d.mode.Within-time.Since(d.begun), 1)
}

func (d *division) chooseAll() {
	for i, c := range d.charges {
		d.shares[i].choose(c.Shards, c.Shards, d.random)
	}
}

// choose chooses count of n shards in random order, because the first of equals pays.
func (p *share) choose(n, count int, random func(n int) int) {
	if n < 2 || len(p.numbers) == count {
		return
	}
	first, step := random(n), 1
	if count == 2 {
		step += random(n - 1) // any other shard
	}
	p.numbers, p.shards = make([]int, count), make(bucket.Shards, count)
	for i := range p.numbers {
		p.numbers[i] = (first + i*step) % n
	}
}

func (d *division) resetCosts() {
	for i := range d.charges {
		d.charges[i].Cost = d.asked[i].Cost
	}
}

// lowerCosts lowers the costs to the content of the emptiest bucket, and reports whether they changed. They are
// at most the amount that the marker can store.
func (d *division) lowerCosts() (changed bool) {
	there := bucket.MaxTokens
	if d.marker.on {
		there = maxRemembered
	}
	for i := range d.charges {
		there = min(there, d.remaining(i))
	}
	d.marker.there = there
	for i := range d.charges {
		cost := bucket.UpTo(d.asked[i].Cost, there)
		changed = changed || cost != d.charges[i].Cost
		d.charges[i].Cost = cost
	}
	return changed
}

func (d *division) remaining(i int) bucket.Tokens {
	if !isSharded(d.charges[i]) {
		return d.shares[i].snap.Remaining()
	}
	sum := bucket.Tokens(0)
	for _, shard := range d.shares[i].shards {
		sum += shard.Remaining()
	}
	return sum
}

// spread divides the costs among shards, and reports whether the shards can pay within maxWait.
func (d *division) spread(maxWait time.Duration) bool {
	able := true
	d.wait = 0
	for i, c := range d.charges {
		if !isSharded(c) || d.shares[i].shards.Spread(c.Cost, 0) {
			continue
		}
		d.wait = maxWait
		able = d.shares[i].shards.Spread(c.Cost, maxWait) && able
	}
	return able
}

// maxWait returns the wait for the take. It is 0 if only shards are charged and all hold their parts, so that
// no shard goes into debt for tokens in another.
func (d *division) maxWait() time.Duration {
	if d.wait == 0 && !slices.ContainsFunc(d.charges, func(c store.Charge) bool { return !isSharded(c) }) {
		return 0
	}
	return d.mode.MaxWait
}

func (d *division) unshardedAllow() bool {
	for i, c := range d.charges {
		if !isSharded(c) && !d.shares[i].snap.Allowed {
			return false
		}
	}
	return true
}

// deniedByUnsharded reports whether unsharded buckets alone denied the take.
func (d *division) deniedByUnsharded() bool {
	return !d.replayed && !d.unshardedAllow() && d.shardsAdmitted()
}

func (d *division) shardsAdmitted() bool {
	for i, c := range d.charges {
		if isSharded(c) && !d.snapshotOf(i, d.mode.MaxWait).Allowed {
			return false
		}
	}
	return true
}

func (d *division) deny() {
	for i := range d.shares {
		for j := range d.shares[i].shards {
			d.shares[i].shards[j].Allowed = false
		}
	}
}

// replay shows every charge as admitted. A reservation's wait is then at least the original one, because it lasts
// until no shard is in debt. The instant of the first attempt is unknown, so cancellations of a retry refund
// nothing.
func (d *division) replay() {
	for i, c := range d.asked {
		if d.mode.UpTo {
			c.Cost = bucket.UpTo(c.Cost, d.marker.there)
		}
		d.charges[i].Cost = c.Cost
		p := &d.shares[i]
		p.snap.Cost, p.snap.Allowed, p.snap.RetryAfter = c.Cost, true, 0
		p.snap = p.snap.WithoutInstant()
		for j := range p.shards {
			p.shards[j].Cost, p.shards[j].Allowed = 0, true
			p.shards[j] = p.shards[j].WithoutInstant()
		}
		if len(p.shards) > 0 {
			p.shards[0].Cost = c.Cost
		}
	}
}

func (d *division) snapshotOf(i int, maxWait time.Duration) bucket.Snapshot {
	c, p := &d.charges[i], &d.shares[i]
	if !isSharded(*c) {
		return p.snap
	}
	if d.mode.DryRun {
		return p.shards.Preview(c.Limit, c.Cost, maxWait)
	}
	return p.shards.Merge(c.Limit, c.Cost, maxWait)
}

func (d *division) appendSnapshots(dst []bucket.Snapshot) []bucket.Snapshot {
	for i := range d.charges {
		dst = append(dst, d.snapshotOf(i, d.mode.MaxWait))
	}
	return dst
}
