// SPDX-License-Identifier: Apache-2.0

package recipes_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete/keyed"
)

// Five wrong passwords, and then one more every 12 minutes. The key is the user and the address: with the user alone,
// an attacker could lock out any user.
func newLogins() *keyed.Limiter { return keyed.Must("5/1h", 5) }

func loginKey(user, address string) string { return fmt.Sprintf("%q %q", user, address) }

// Every attempt is charged before the password check, and a right password cancels the charge. So of any number of
// parallel guesses, five are checked. A cancellation returns only tokens that have not refilled since, so a login does
// not allow more guesses.
func Example_failedLogins() {
	logins, key := newLogins(), loginKey("alice", "192.0.2.1")
	login := func(password string) string {
		attempt, err := logins.Reserve(key, 1, 0)
		if err != nil || !attempt.Allowed {
			return "too many wrong passwords"
		}
		if password != "secret" {
			return "wrong password"
		}
		if err := attempt.Cancel(context.Background()); err != nil {
			return err.Error()
		}
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
