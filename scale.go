// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"math/bits"

	"github.com/metehq/mete/bucket"
)

// scaled is what cost becomes under limit l by a scale. It is no less than cost,
// and no more than l could admit at once where it could admit cost.
func scaled(cost bucket.Tokens, l *bucket.Limit, scale func(bucket.Tokens) bucket.Tokens) bucket.Tokens {
	most := l.Capacity()
	if l.Queued() {
		most += l.MaxReserved()
	}
	return max(min(scale(cost), most), cost)
}

// proportion returns x·num/den, rounded down or up, at most [bucket.MaxTokens],
// for amounts of which none is negative and den is above 0.
func proportion(x, num, den bucket.Tokens, up bool) bucket.Tokens {
	hi, lo := bits.Mul64(uint64(x), uint64(num))
	if hi >= uint64(den) {
		return bucket.MaxTokens
	}
	quotient, rest := bits.Div64(hi, lo, uint64(den))
	if up && rest > 0 {
		quotient++
	}
	return bucket.Tokens(min(quotient, uint64(bucket.MaxTokens)))
}
