// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// held 4000, settled 812: settled
	// held 4000, settled 3500: settled
	// held 4000, settled 4000: settled
	// no room for 4000 tokens
}
