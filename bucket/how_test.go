// SPDX-License-Identifier: Apache-2.0

package bucket

import "testing"

// TestHow_Algorithm: a limit keeps each of the eight values of an algorithm, and nothing else changes with it.
func TestHow_Algorithm(t *testing.T) {
	for a := range Algorithm(8) {
		l := Limit{how: a.bits() | uint64(AnchorKey)<<howAnchor | howQueue | 5<<howStart}
		if got := l.Algorithm(); got != a {
			t.Errorf("algorithm %d reads as %d", a, got)
		}
		if l.Anchor() != AnchorKey || !l.Queued() || l.start() != 5 || l.how&howFree != 0 {
			t.Errorf("algorithm %d: got anchor %d, queued %v, start %d", a, l.Anchor(), l.Queued(), l.start())
		}
		if plain := (Limit{how: a.bits()}); (plain.how&howAlgorithm != 0) != (a != AlgorithmContinuous) {
			t.Errorf("algorithm %d: bits %b", a, plain.how)
		}
	}
}
