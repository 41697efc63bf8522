// SPDX-License-Identifier: Apache-2.0

package policy

// A Test is an entry of tests in a policy file.
type Test struct{ Name string }

func (c *compiler) readTests(n *node) {}
