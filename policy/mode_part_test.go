// SPDX-License-Identifier: Apache-2.0

package policy

import "testing"

// Of evenly distributed hashes, a mode exempts its share.
func TestMode_Spares(t *testing.T) {
	for _, m := range []Mode{1, 2, 5_000, 7_500, 9_998, 9_999} {
		spared := Mode(0)
		for part := range uint64(ModeShadow) {
			if first := (part<<32 + uint64(ModeShadow) - 1) / uint64(ModeShadow); m.exempts(first << 32) {
				spared++
			}
		}
		if spared != m {
			t.Errorf("mode %v spares %d of %d", m, spared, ModeShadow)
		}
	}
}
