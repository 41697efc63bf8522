// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/metehq/mete/bucket"
)

// numbers are what the fields of a limit say, as far as they could be read.
type numbers struct {
	bucket.Spec
	ok bool // they are all there

	// most is what one request can cost, 0 where that is not known, and mostIs
	// what it is called: "burst of 20".
	most   bucket.Tokens
	mostIs string

	shards *node // how many there are to be, where that is given
	leased *node // whether it is to be, where that is given
}

// tokenBucket reads a limit that refills continuously, or in steps where it says
// refill: interval.
func (c *compiler) tokenBucket(o *object) numbers {
	refill, refillOK := "continuous", true
	if f := o.field("refill"); f != nil {
		refill, refillOK = c.choice(f, "refill", []string{"continuous", "interval"}, nil)
	}
	if refill == "interval" {
		return c.intervals(o)
	}
	rate, rateOK := c.rate(o)
	reserved, reservedOK := c.maxReserved(o)
	capacity, capacityOK := c.burst(o, rate, rateOK, reserved)
	most, mostIs := capacity, fmt.Sprintf("burst of %v", capacity)
	if capacityOK && capacity == 0 {
		most, mostIs = *reserved, fmt.Sprintf("max_reserved of %v", *reserved)
	}
	for _, name := range []string{"anchor", "start"} {
		if f := o.field(name); f != nil && refillOK {
			c.absent(f, fmt.Sprintf("%s is of a bucket that refills in intervals, not all the time", name), "say refill: interval")
			rateOK = false
		}
	}
	return numbers{
		Spec: bucket.Spec{Capacity: capacity, Rate: rate, MaxReserved: reserved},
		ok:   refillOK && rateOK && capacityOK && reservedOK,
		most: most, mostIs: mostIs,
		shards: o.field("shards"), leased: o.field("leased"),
	}
}

// burst reads how much a bucket holds that refills all the time. Of a bucket that holds
// nothing every request is a reservation, so that the limit must allow these.
func (c *compiler) burst(o *object, rate bucket.Rate, rateOK bool, reserved *bucket.Tokens) (bucket.Tokens, bool) {
	n := o.field("burst")
	if n == nil || !isZero(n) {
		return c.extent(o, "burst", `the most a bucket holds, as in 20 or "300s"`, rate, rateOK)
	}
	if reserved == nil || *reserved == 0 {
		c.add(n, "burst must be above 0 where nothing can be reserved",
			"to pace requests say algorithm: leaky_bucket with a queue; a burst of 0 with max_reserved above 0 admits only requests that can wait (max_wait)")
		return 0, false
	}
	for _, name := range []string{"shards", "leased", "staged_actions"} {
		if f := o.field(name); f != nil {
			c.add(f, fmt.Sprintf("a burst of 0 leaves nothing for %s", name), "remove one of them")
			return 0, false
		}
	}
	return 0, true
}

// isZero reports whether n is a way to write 0.
func isZero(n *node) bool {
	if n.kind != isNumber && n.kind != isText || !numeric(n.text) {
		return false
	}
	t, err := bucket.ParseTokens(n.text)
	return err == nil && t == 0
}

// intervals reads a token bucket of which a whole interval's tokens come at once.
func (c *compiler) intervals(o *object) numbers {
	rate, rateOK := c.rate(o, "rate")
	capacity, capacityOK := c.extent(o, "burst", `the most a bucket holds, as in 20 or "300s"`, rate, rateOK)
	if rateOK && capacityOK && capacity < rate.Tokens {
		c.add(o.field("burst"), fmt.Sprintf("a burst below the %v tokens of an interval: the bucket has no room for the others", rate.Tokens),
			fmt.Sprintf("rate %v/%v says the same", capacity, rate.Per))
		capacityOK = false
	}
	n := c.steps(o, rate, rateOK)
	n.Capacity, n.most, n.mostIs = capacity, capacity, fmt.Sprintf("burst of %v", capacity)
	n.ok = n.ok && capacityOK
	if f := o.field("shards"); f != nil {
		c.add(f, "only a bucket that refills all the time can be split over shards", "remove it")
		n.ok = false
	}
	return n
}

// fixedWindow reads a limit whose tokens come all at once, a window's at the
// beginning of each.
func (c *compiler) fixedWindow(o *object) numbers {
	rate, rateOK := c.window(o)
	capacity, capacityOK, is := rate.Tokens, true, fmt.Sprintf("%v tokens of a window", rate.Tokens)
	if f := o.field("capacity"); f != nil {
		capacity, capacityOK = c.tokens(f, "capacity")
		is = fmt.Sprintf("capacity of %v", capacity)
		if rateOK && capacityOK && capacity < rate.Tokens {
			c.add(f, fmt.Sprintf("the capacity is below the %v tokens of a window: a bucket has no room for the others", rate.Tokens),
				"it is for what earlier windows left over; lower tokens instead")
			capacityOK = false
		}
	}
	n := c.steps(o, rate, rateOK)
	n.Capacity, n.most, n.mostIs = capacity, capacity, is
	n.ok = n.ok && capacityOK
	return n
}

// budget reads a fixed window in the words of another dialect. Budgets of whole
// weeks begin on Mondays unless they say otherwise.
func (c *compiler) budget(o *object) numbers {
	rate, ok := c.amountPer(o, "budget", "period")
	n := c.steps(o, rate, ok)
	if week := 7 * 24 * time.Hour; ok && o.field("start") == nil && rate.Per%week == 0 {
		n.Start = 4 * 24 * time.Hour // 1970 began on a Thursday
	}
	n.Capacity, n.most, n.mostIs = rate.Tokens, rate.Tokens, fmt.Sprintf("budget of %v", rate.Tokens)
	return n
}

// steps reads what all stepped limits have in common.
func (c *compiler) steps(o *object, rate bucket.Rate, rateOK bool) numbers {
	anchor, start, anchorOK := c.anchor(o, rate.Per)
	reserved, reservedOK := c.maxReserved(o)
	return numbers{
		Spec:   bucket.Spec{Algorithm: bucket.Stepped, Rate: rate, MaxReserved: reserved, Anchor: anchor, Start: start},
		ok:     rateOK && anchorOK && reservedOK,
		leased: o.field("leased"),
	}
}

// anchor reads where the intervals of length per, 0 where that is not known,
// begin.
func (c *compiler) anchor(o *object, per time.Duration) (anchor bucket.Anchor, start time.Duration, ok bool) {
	ok = true
	if f := o.field("anchor"); f != nil {
		var word string
		word, ok = c.choice(f, "anchor", []string{"epoch", "key", "first"}, nil)
		anchor = map[string]bucket.Anchor{"key": bucket.AnchorKey, "first": bucket.AnchorFirst}[word]
	}
	f := o.field("start")
	if f == nil {
		return anchor, 0, ok
	}
	start, startOK := c.duration(f, "start", "7h")
	switch {
	case anchor != bucket.AnchorEpoch:
		c.add(f, "start moves the beginnings of anchor: epoch, and of no other", "remove one of them")
		startOK = false
	case startOK && per > 0 && start >= per:
		c.add(f, fmt.Sprintf("start must be below the %s from one beginning to the next", short(per)), "they are counted from the beginning of 1970, UTC")
		startOK = false
	}
	return anchor, start, ok && startOK
}

// sliding reads a limit on what may be spent in any window.
func (c *compiler) sliding(o *object, algorithm bucket.Algorithm) numbers {
	rate, ok := c.window(o)
	n := numbers{Spec: bucket.Spec{Algorithm: algorithm, Rate: rate}, ok: ok, most: rate.Tokens,
		mostIs: fmt.Sprintf("%v tokens of a window", rate.Tokens)}
	if algorithm == bucket.SlidingLog && rate.Tokens > bucket.MaxLogTokens {
		c.add(o.field("tokens"), fmt.Sprintf("a sliding_log has at most %v tokens: it remembers each cost in the window", bucket.MaxLogTokens),
			"a sliding_window counts instead")
		n.ok = false
	}
	return n
}

// leakyBucket reads a limit that lets requests start evenly spaced, and the
// others wait.
func (c *compiler) leakyBucket(o *object) numbers {
	rate, rateOK := c.rate(o)
	queue, queueOK := c.extent(o, "queue", `how many tokens may wait, as in 5 or, for that long, "2s"; 0 lets none`, rate, rateOK)
	capacity, capacityOK := bucket.Token, true
	if f := o.field("capacity"); f != nil {
		capacity, capacityOK = c.tokens(f, "capacity")
	}
	n := numbers{Spec: bucket.Spec{Capacity: capacity, Rate: rate, Queue: queue}, ok: rateOK && queueOK && capacityOK}
	if queue == 0 {
		n.MaxReserved = new(bucket.Tokens)
	}
	if queueOK && capacityOK {
		n.most, n.mostIs = capacity+queue, fmt.Sprintf("capacity and queue of %v together", capacity+queue)
	}
	return n
}
