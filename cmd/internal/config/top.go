// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/metehq/mete/topkeys"

// checkTopKeys has the one judge who uses it.
func (d *decoder) checkTopKeys(counters int) {
	if counters < 0 || counters > topkeys.MaxCounters {
		d.fail("top_keys", "must be between 0 and %d, not %d", topkeys.MaxCounters, counters)
	}
}
