// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"fmt"

	"github.com/metehq/mete/keyed"
)

// Five wrong passwords, and one more every 12 minutes. The key is the user and
// the address: with the user alone, anybody could lock anybody out.
func newLogins() *keyed.Limiter { return keyed.Must("5/1h", 5) }

func loginKey(user, address string) string { return fmt.Sprintf("%q %q", user, address) }

// Every attempt is charged before the password is looked at, and the right one
// is given back. However many guesses arrive at once, five are looked at.
func Example_failedLogins() {
	logins, key := newLogins(), loginKey("alice", "192.0.2.1")
	login := func(password string) string {
		if !logins.Allow(key) {
			return "too many wrong passwords"
		}
		if password != "secret" {
			return "wrong password"
		}
		logins.Refund(key, 1)
		return "welcome"
	}
	for range 4 {
		fmt.Println(login("guess"))
	}
	fmt.Println(login("secret"))
	fmt.Println(login("guess"))
	fmt.Println(login("secret"))
	// Output:
	// wrong password
	// wrong password
	// wrong password
	// wrong password
	// welcome
	// wrong password
	// too many wrong passwords
}
