// SPDX-License-Identifier: Apache-2.0

package policy

// lint looks for what is probably not meant.
func (c *compiler) lint() {}
