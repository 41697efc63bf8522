// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/metehq/mete/bucket"
)

// Tokens is an amount of tokens as programs write it: 3 is three tokens, and 0.25 is a
// quarter of one. There are thousandths of a token, and nothing finer: an amount is the
// nearest thousandth, and an amount that is not near one is an error that wraps [ErrCost].
// Whole numbers and thousandths up to 4 trillion tokens are exact.
//
// The engine counts in [bucket.Tokens], which are thousandths. The two types do not mix:
// code that gives one for the other does not compile.
type Tokens float64

// TokensOf returns an amount that the engine counted.
func TokensOf(t bucket.Tokens) Tokens {
	return Tokens(float64(t) / float64(bucket.Token))
}

// String formats t as a decimal number of tokens: "20", "0.5".
func (t Tokens) String() string {
	if n, ok := t.count(); ok {
		return n.String()
	}
	return strconv.FormatFloat(float64(t), 'g', -1, 64)
}

// noise is how far an amount may be from a thousandth, in thousandths: sums and products of
// decimal fractions are not exact in binary.
const noise = 1e-3

// count returns the amount in thousandths, and whether it is one of between 0 and
// [bucket.MaxTokens].
func (t Tokens) count() (bucket.Tokens, bool) {
	thousandths := float64(t) * float64(bucket.Token)
	nearest := math.Round(thousandths)
	switch {
	case nearest == 0 && t != 0: // too little is not nothing, which stands for the rule's own cost
		return 0, false
	case !(nearest >= 0 && math.Abs(thousandths-nearest) <= max(noise, nearest*0x1p-51)): // also not a number
		return 0, false
	case t == TokensOf(bucket.MaxTokens):
		return bucket.MaxTokens, true
	case nearest > float64(bucket.MaxTokens):
		return 0, false
	}
	return bucket.Tokens(nearest), true
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
