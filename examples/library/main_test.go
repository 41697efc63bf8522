// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// true per-key 0s
	// true per-key 0s
	// true per-key 0s
	// false per-key 1m0s
}
