// SPDX-License-Identifier: Apache-2.0

// Package seconds writes times for programs: as a decimal number of seconds,
// exact to the microsecond.
package seconds

import (
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
)

// AppendDuration appends d, at least 0, or null if it is [bucket.Never]. What is
// finer than a microsecond is rounded up: no client may come back too early.
func AppendDuration(b []byte, d time.Duration) []byte {
	if d == bucket.Never {
		return append(b, "null"...)
	}
	micros := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		micros++
	}
	return Append(b, micros)
}

// Append appends a number of microseconds, at least 0: 0, 2, 0.1, 12.000001.
// It calculates in integers, so that no digit is a rounding error.
func Append(b []byte, micros int64) []byte {
	b = strconv.AppendInt(b, micros/1e6, 10)
	if frac := micros % 1e6; frac != 0 {
		var buf [7]byte
		digits := strconv.AppendInt(buf[:0], 1e6+frac, 10)[1:]
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		b = append(append(b, '.'), digits...)
	}
	return b
}
