// SPDX-License-Identifier: Apache-2.0

package mete

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/metehq/mete/bucket"
)

// Tokens is an amount of tokens: 3 is three tokens, and 0.25 is a quarter of one. The smallest unit is a
// thousandth of a token. A value within rounding error of a thousandth is rounded; any other value is an error
// that wraps [ErrCost]. Whole numbers and thousandths up to 4 trillion tokens are exact.
//
// The engine counts in [bucket.Tokens], which are thousandths. The compiler rejects a mix of both types.
type Tokens float64

// TokensOf converts an amount in thousandths.
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

// tolerance is the allowed distance from a thousandth, in thousandths: sums and products of decimal fractions
// are inexact in binary.
const tolerance = 1e-3

// count returns the amount in thousandths, and whether it is valid and between 0 and [bucket.MaxTokens].
func (t Tokens) count() (bucket.Tokens, bool) {
	thousandths := float64(t) * float64(bucket.Token)
	nearest := math.Round(thousandths)
	switch {
	case nearest == 0 && t != 0: // a tiny cost must not turn into 0, the rule's own cost
		return 0, false
	case !(nearest >= 0 && math.Abs(thousandths-nearest) <= max(tolerance, nearest*0x1p-51)): // false for NaN
		return 0, false
	case t == TokensOf(bucket.MaxTokens):
		return bucket.MaxTokens, true
	case nearest > float64(bucket.MaxTokens):
		return 0, false
	}
	return bucket.Tokens(nearest), true
}

// proportion returns x·num/den, rounded down or up, and at most [bucket.MaxTokens]. No amount may be negative,
// and den must be above 0.
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
