// SPDX-License-Identifier: Apache-2.0

package workload

// Calls are the keys of consecutive calls. A call can have several keys, which are sorted.
type Calls []Keys

func (c Calls) Len() int { return c[0].Len() }

// Put writes the keys of call i to dst.
func (c Calls) Put(dst []string, i int) {
	for n, keys := range c {
		dst[n] = keys.At(i)
	}
}
