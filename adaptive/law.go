// SPDX-License-Identifier: Apache-2.0

package adaptive

// The products below fit in 63 bits: a latency has 32 bits, its mean 8 more, a tolerance 17, and a factor 20.
const (
	toleranceUnit = 1024

	// fine is the resolution of the long-term mean: 256ths of a microsecond.
	fine = 256

	// The long-term mean moves by 1/followFall or 1/followRise of the difference per interval.
	followFall = 4
	followRise = 64
)

func (c *Controller) updateFactor(w *window) {
	factor := c.factor.Load()
	next := factor + c.config.step
	switch {
	case w.failed*unit > c.config.failures*w.count:
		next = factor * c.config.backoff / unit
	case c.config.law == LawGradient:
		next = c.gradientFactor(w, factor)
	}
	next = min(max(next, c.config.floor), unit)
	if next < factor {
		c.resume = c.now + c.config.interval
	}
	c.factor.Store(next)
}

// gradientFactor returns the factor cut by the excess of latency over the tolerated one, at most by the
// backoff, or increased by a step. It also moves the long-term mean. While latency exceeds the tolerated one,
// the factor keeps falling: if load is not the cause, it reaches the floor, and the mean adapts there.
func (c *Controller) gradientFactor(w *window, factor int64) int64 {
	mean := max(w.microseconds/w.count*fine+w.microseconds%w.count*fine/w.count, 1)
	if c.usual == 0 {
		c.usual = mean
	}
	tolerated := c.usual * c.config.tolerance / toleranceUnit
	switch {
	case mean < c.usual:
		c.usual -= (c.usual - mean) / followFall
	case factor == unit || factor == c.config.floor:
		// Load does not cause latency at the floor, except shortly after an overload. The mean must not jump.
		c.usual += min(mean-c.usual, c.usual) / followRise
	}
	if mean <= tolerated {
		return factor + c.config.step
	}
	return factor * max(tolerated*unit/mean, c.config.backoff) / unit
}
