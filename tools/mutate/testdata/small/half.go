// SPDX-License-Identifier: Apache-2.0

// Package small has one mutant of each outcome.
package small

import _ "embed"

//go:embed half.lua
var script string

const divisor = 2

func half(n int) int {
	return n / divisor
}

// halfUpTo does not use its first parameter.
func halfUpTo(_ string, n, most int) int {
	return min(half(n), most)
}

func sum[N int | float64](numbers ...N) (total N) {
	for i := 0; i < len(numbers); i++ {
		total += numbers[i]
	}
	return
}

func join(a, b string) string {
	return a + b
}

func isEven(n int) bool {
	for n > 1 {
		n -= 2
	}
	return n == 0
}
