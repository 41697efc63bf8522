// SPDX-License-Identifier: Apache-2.0

package adaptive

// The products below stay within 63 bits: a latency has 32, of which a mean is
// kept with 8 more, a tolerance has 17 and a factor 20.
const (
	toleranceUnit = 1024

	// fine is how finely the long-term mean is kept: in 256ths of a microsecond.
	fine = 256

	// The long-term mean moves by one part in so many towards the mean of an
	// interval.
	followFall = 4
	followRise = 64
)

// conclude moves the factor by what an interval has shown.
func (c *Controller) conclude(w *window) {
	factor := c.factor.Load()
	next := factor + c.config.step
	switch {
	case w.failed*unit > c.config.failures*w.count:
		next = factor * c.config.backoff / unit
	case c.config.law == Gradient:
		next = c.gradient(w, factor)
	}
	next = min(max(next, c.config.floor), unit)
	if next < factor {
		c.resume = c.now + c.config.interval
	}
	c.factor.Store(next)
}

// gradient returns the factor cut by how far the latency is above what is
// tolerated, at most to the backoff, or grown by a step where it is not. It moves
// the long-term mean. There is no point at which a latency above the tolerated
// one lets the factor rest: if it is not load's doing the factor comes to the
// floor, where the mean learns so.
func (c *Controller) gradient(w *window, factor int64) int64 {
	mean := max(w.microseconds/w.count*fine+w.microseconds%w.count*fine/w.count, 1)
	if c.usual == 0 {
		c.usual = mean
	}
	tolerated := c.usual * c.config.tolerance / toleranceUnit
	switch {
	case mean < c.usual:
		c.usual -= (c.usual - mean) / followFall
	case factor == unit || factor == c.config.floor:
		// What is slow at the floor is not slow for lack of room, unless it comes
		// from before: the mean does not leap.
		c.usual += min(mean-c.usual, c.usual) / followRise
	}
	if mean <= tolerated {
		return factor + c.config.step
	}
	return factor * max(tolerated*unit/mean, c.config.backoff) / unit
}
