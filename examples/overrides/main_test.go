// SPDX-License-Identifier: Apache-2.0

package main

func Example() {
	main()
	// Output:
	// scraper: 0 of 3 allowed blocked
	// partner: 3 of 3 allowed
	// anybody: 2 of 3 allowed token_bucket_exceeded
	// scraper: 2 of 3 allowed token_bucket_exceeded
	// made by kim: downloads the whole catalog
	// made by kim: moves their data
	// removed by lee: they have stopped
}
