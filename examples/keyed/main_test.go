// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// attempt 21: too many attempts
	// attempt 22: too many attempts
	// another address: <nil>
}
