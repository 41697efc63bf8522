// SPDX-License-Identifier: Apache-2.0

package workload

// Calls are the keys of one call after another, where a call may ask for
// several keys: those of a call are in order.
type Calls []Keys

// Len returns the number of calls.
func (c Calls) Len() int { return c[0].Len() }

// Put writes the keys of call i to dst, which has room for them.
func (c Calls) Put(dst []string, i int) {
	for n, keys := range c {
		dst[n] = keys.At(i)
	}
}
