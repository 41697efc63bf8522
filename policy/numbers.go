// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/big"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy/internal/inspect"
)

type numbers struct {
	bucket.Spec
	ok bool // they are complete

	// most is the highest cost that a request can have, or 0 if it is unknown. mostIs describes most: "burst of 20".
	most   bucket.Tokens
	mostIs string
}

// The words of policy files for how and when a bucket refills.
var (
	refillWords = []string{"continuous", "interval"}
	anchorWords = []string{"epoch", "key", "first"} // in the order of [bucket.Anchor]
)

func (c *compiler) readTokenBucket(o *parse.Object) numbers {
	refill, refillOK := 0, true
	if f := o.Field("refill"); f != nil {
		refill = c.Choice(f, "refill", refillWords, nil)
		refillOK = refill >= 0
	}
	if refill == 1 {
		return c.readIntervals(o)
	}
	rate, rateOK := c.readRate(o)
	reserved, reservedOK := c.readMaxReserved(o)
	capacity, capacityOK := c.readBurst(o, rate, rateOK, reserved)
	most, mostIs := capacity, fmt.Sprintf("burst of %v", capacity)
	if capacityOK && capacity == 0 {
		most, mostIs = *reserved, fmt.Sprintf("max_reserved of %v", *reserved)
	}
	for _, name := range []string{"anchor", "start"} {
		if f := o.Field(name); f != nil && refillOK {
			c.AddAt(f, fmt.Sprintf("%s requires a bucket that refills at intervals", name), "use refill: interval")
			rateOK = false
		}
	}
	return numbers{
		Spec: bucket.Spec{Capacity: capacity, Rate: rate, MaxReserved: reserved},
		ok:   refillOK && rateOK && capacityOK && reservedOK,
		most: most, mostIs: mostIs,
	}
}

// readBurst reads the capacity of a bucket that refills continuously. It is the tokens of the rate by default. With a burst of 0, every request needs
// a reservation, so max_reserved must be above 0.
func (c *compiler) readBurst(o *parse.Object, rate bucket.Rate, rateOK bool, reserved *bucket.Tokens) (bucket.Tokens, bool) {
	n := o.Field("burst")
	switch {
	case n == nil:
		return rate.Tokens, rateOK
	case !isZero(n):
		return c.readExtent(o, "burst", `the capacity of the bucket, as in 20 or "300s"`, rate, rateOK)
	}
	if reserved == nil || *reserved == 0 {
		c.Add(n, "burst must be above 0 unless max_reserved is above 0",
			"to pace requests, use algorithm: leaky_bucket with a queue; a burst of 0 with max_reserved above 0 admits only requests that can wait (max_wait)")
		return 0, false
	}
	for _, name := range []string{"shards", "leased", "staged_actions"} {
		if f := o.Field(name); f != nil {
			c.Add(f, fmt.Sprintf("a burst of 0 cannot be combined with %s", name), "remove one of them")
			return 0, false
		}
	}
	return 0, true
}

func isZero(n *parse.Node) bool {
	if n.Kind != parse.KindNumber && n.Kind != parse.KindText || !parse.Numeric(n.Text) {
		return false
	}
	t, err := bucket.ParseTokens(n.Text)
	return err == nil && t == 0
}

func (c *compiler) readIntervals(o *parse.Object) numbers {
	rate, rateOK := c.readRate(o, "rate")
	capacity, capacityOK := rate.Tokens, rateOK
	if o.Field("burst") != nil {
		capacity, capacityOK = c.readExtent(o, "burst", `the capacity of the bucket, as in 20 or "300s"`, rate, rateOK)
	}
	if rateOK && capacityOK && capacity < rate.Tokens {
		c.Add(o.Field("burst"), fmt.Sprintf("burst is below the %v tokens of an interval: the bucket cannot hold all of them", rate.Tokens),
			fmt.Sprintf("rate %v/%v has the same effect", capacity, rate.Per))
		capacityOK = false
	}
	n := c.readSteps(o, rate, rateOK)
	n.Capacity, n.most, n.mostIs = capacity, capacity, fmt.Sprintf("burst of %v", capacity)
	n.ok = n.ok && capacityOK
	if f := o.Field("shards"); f != nil {
		c.Add(f, "only a bucket that refills continuously can be split over shards", "remove it")
		n.ok = false
	}
	return n
}

func (c *compiler) readFixedWindow(o *parse.Object) numbers {
	rate, rateOK := c.readAmountPer(o, "tokens", "window", (*compiler).readLength)
	capacity, capacityOK, is := rate.Tokens, true, fmt.Sprintf("%v tokens of a window", rate.Tokens)
	if f := o.Field("capacity"); f != nil {
		capacity, capacityOK = c.Tokens(f, "capacity")
		is = fmt.Sprintf("capacity of %v", capacity)
		if rateOK && capacityOK && capacity < rate.Tokens {
			c.Add(f, fmt.Sprintf("capacity is below the %v tokens of a window: the bucket cannot hold all of them", rate.Tokens),
				"capacity is for unused tokens of earlier windows; lower tokens instead")
			capacityOK = false
		}
	}
	n := c.readWindowSteps(o, "window", rate, rateOK)
	n.Capacity, n.most, n.mostIs = capacity, capacity, is
	n.ok = n.ok && capacityOK
	return n
}

// readBudget reads cost_based: a fixed window with other field names. Budgets of whole weeks begin on Mondays
// unless start is set.
func (c *compiler) readBudget(o *parse.Object) numbers {
	rate, ok := c.readAmountPer(o, "budget", "period", (*compiler).readLength)
	n := c.readWindowSteps(o, "period", rate, ok)
	if week := 7 * 24 * time.Hour; ok && n.Anchor != bucket.AnchorCalendar && o.Field("start") == nil && rate.Per%week == 0 {
		n.Start = 4 * 24 * time.Hour // 1970 began on a Thursday
	}
	n.Capacity, n.most, n.mostIs = rate.Tokens, rate.Tokens, fmt.Sprintf("budget of %v", rate.Tokens)
	return n
}

// readWindowSteps is readSteps for windows whose length may be a calendar window.
func (c *compiler) readWindowSteps(o *parse.Object, length string, rate bucket.Rate, rateOK bool) numbers {
	f := o.Field(length)
	window, ok := calendarOf(f)
	if !ok {
		if rate.Per > 0 && !c.refuseCalendarFields(o, length) {
			return numbers{}
		}
		return c.readSteps(o, rate, rateOK)
	}
	calendar, calendarOK := c.readCalendar(o, f, window)
	reserved, reservedOK := c.readMaxReserved(o)
	return numbers{
		Spec: bucket.Spec{Algorithm: bucket.AlgorithmStepped, Rate: rate, MaxReserved: reserved, Anchor: bucket.AnchorCalendar, Calendar: calendar},
		ok:   rateOK && calendarOK && reservedOK,
	}
}

func (c *compiler) readSteps(o *parse.Object, rate bucket.Rate, rateOK bool) numbers {
	anchor, start, anchorOK := c.readAnchor(o, rate.Per)
	reserved, reservedOK := c.readMaxReserved(o)
	return numbers{
		Spec: bucket.Spec{Algorithm: bucket.AlgorithmStepped, Rate: rate, MaxReserved: reserved, Anchor: anchor, Start: start},
		ok:   rateOK && anchorOK && reservedOK,
	}
}

// readAnchor reads where the intervals of length per begin. per is 0 if it is unknown.
func (c *compiler) readAnchor(o *parse.Object, per time.Duration) (anchor bucket.Anchor, start time.Duration, ok bool) {
	ok = true
	if f := o.Field("anchor"); f != nil {
		i := c.Choice(f, "anchor", anchorWords, nil)
		if ok = i >= 0; ok {
			anchor = [...]bucket.Anchor{bucket.AnchorEpoch, bucket.AnchorKey, bucket.AnchorFirst}[i]
		}
	}
	f := o.Field("start")
	if f == nil {
		return anchor, 0, ok
	}
	start, startOK := c.Duration(f, "start", "7h")
	switch {
	case anchor != bucket.AnchorEpoch:
		c.Add(f, "start requires anchor: epoch", "remove one of them")
		startOK = false
	case startOK && per > 0 && start >= per:
		c.Add(f, fmt.Sprintf("start must be below the interval of %s", inspect.FormatDuration(per)), "intervals are counted from 1970-01-01T00:00:00Z")
		startOK = false
	}
	return anchor, start, ok && startOK
}

func (c *compiler) readSliding(o *parse.Object, algorithm bucket.Algorithm) numbers {
	rate, ok := c.readWindow(o)
	n := numbers{Spec: bucket.Spec{Algorithm: algorithm, Rate: rate}, ok: ok, most: rate.Tokens,
		mostIs: fmt.Sprintf("%v tokens of a window", rate.Tokens)}
	if algorithm == bucket.AlgorithmSlidingLog && rate.Tokens > bucket.MaxLogTokens {
		c.Add(o.Field("tokens"), fmt.Sprintf("a sliding_log has at most %v tokens, because it records each cost in the window", bucket.MaxLogTokens),
			"use a sliding_window, which only counts")
		n.ok = false
	}
	return n
}

// readLeakyBucket reads a limit that spaces requests evenly and queues early ones.
func (c *compiler) readLeakyBucket(o *parse.Object) numbers {
	rate, rateOK := c.readRate(o)
	queue, queueOK := c.readExtent(o, "queue", `how many tokens may wait, as in 5, or how long, as in "2s"; 0 disables the queue`, rate, rateOK)
	capacity, capacityOK := bucket.Token, true
	if f := o.Field("capacity"); f != nil {
		capacity, capacityOK = c.Tokens(f, "capacity")
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

// readExtent reads a required field: a number of tokens, or the time that the rate takes to refill them. Only queue
// may be 0.
func (c *compiler) readExtent(o *parse.Object, name, hint string, rate bucket.Rate, rateOK bool) (bucket.Tokens, bool) {
	n := o.Require(name, hint)
	if n == nil {
		return 0, false
	}
	if n.Kind != parse.KindText || len(n.Text) > parse.MaxShownBytes || n.Numeric() {
		if name == "queue" {
			return c.Amount(n, name)
		}
		return c.Tokens(n, name)
	}
	d, err := bucket.ParseDuration(n.Text)
	if err != nil {
		c.Add(n, name+" must be a number of tokens or a duration", `as in 20 or "300s"`)
		return 0, false
	}
	if !rateOK {
		return 0, false
	}
	tokens := new(big.Rat).Mul(toPerNano(rate), new(big.Rat).SetInt64(int64(d)))
	whole := new(big.Int).Quo(tokens.Num(), tokens.Denom())
	if whole.Sign() <= 0 || whole.Cmp(big.NewInt(int64(bucket.MaxTokens))) > 0 {
		c.Add(n, fmt.Sprintf("a %s of %v at a rate of %v is not between 0.001 and %v tokens", name, d, rate, bucket.MaxTokens), "")
		return 0, false
	}
	return bucket.Tokens(whole.Int64()), true
}

// readMaxReserved reads the bound of reservations. It returns nil if the field is absent.
func (c *compiler) readMaxReserved(o *parse.Object) (*bucket.Tokens, bool) {
	n := o.Field("max_reserved")
	if n == nil {
		return nil, true
	}
	most, ok := c.Amount(n, "max_reserved")
	return &most, ok
}
