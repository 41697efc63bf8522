// SPDX-License-Identifier: Apache-2.0

package recipes_test

import "fmt"

// The wrong way: peek for a token, check the password, and charge if it was wrong. Parallel guesses all peek before the
// first one is charged.
func Example_failedLoginsWrong() {
	logins, key := newLogins(), loginKey("alice", "192.0.2.1")

	guesses := 0
	for range 100 { // at once: each looks …
		if logins.Peek(key, 1).Allowed {
			guesses++
		}
	}
	for range guesses { // … and only then does the first one fail
		logins.Take(key, 1)
	}
	fmt.Println("look, try, charge:", guesses, "guesses of 5")

	logins, guesses = newLogins(), 0
	for range 100 {
		if logins.Take(key, 1).Allowed {
			guesses++
		}
	}
	fmt.Println("charge, try, refund:", guesses, "guesses of 5")
	// Output:
	// look, try, charge: 100 guesses of 5
	// charge, try, refund: 5 guesses of 5
}
