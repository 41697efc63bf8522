// SPDX-License-Identifier: Apache-2.0

// Command keyed limits logins per address, without a policy.
package main

import (
	"errors"
	"fmt"

	"github.com/metehq/mete/keyed"
)

var errTooMany = errors.New("too many attempts")

// Each address gets a burst of 20 attempts, then 10 per minute.
var logins = keyed.Must("10/1m", 20)

func login(address string) error {
	if !logins.Allow(address) {
		return errTooMany
	}
	return nil // check the password here
}

func main() {
	for i := range 22 {
		if err := login("192.0.2.1"); err != nil {
			fmt.Printf("attempt %d: %v\n", i+1, err)
		}
	}
	fmt.Println("another address:", login("192.0.2.2"))
}
