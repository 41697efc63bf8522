// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"math/big"
	"strings"
)

// maxNumberBytes is how long a number may be written that is looked at.
const maxNumberBytes = 100

// plainNumber writes a number without an exponent and without zeros at its end, as
// far as that is short.
func plainNumber(n json.Number) json.Number {
	if plain, ok := plainDecimal(n.String()); ok {
		return json.Number(plain)
	}
	return n
}

// plainDecimal does so for a decimal number. It is false for what is none, or long.
func plainDecimal(s string) (string, bool) {
	if s == "" || len(s) > maxNumberBytes || strings.Trim(s, "0123456789.eE+-") != "" {
		return "", false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 4 {
		return "", false // an exponent of thousands would make a number of as many digits
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return "", false
	}
	digits, exact := r.FloatPrec()
	if !exact {
		return "", false
	}
	plain := r.FloatString(digits)
	return plain, len(plain) <= maxNumberBytes
}
