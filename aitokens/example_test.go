// SPDX-License-Identifier: Apache-2.0

package aitokens_test

import (
	"fmt"

	"github.com/metehq/mete/aitokens"
)

func ExampleCounter_Count() {
	counter := aitokens.New()
	fmt.Println(counter.Count("gpt-4o", "Why is the sky blue?"))
	// Output:
	// 6
}
