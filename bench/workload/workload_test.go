// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	"github.com/metehq/mete/bench/workload"
)

func count(keys workload.Keys) map[string]int {
	counts := map[string]int{}
	for i := range keys.Len() {
		counts[keys.At(i)]++
	}
	return counts
}

func TestEach(t *testing.T) {
	keys := workload.Each(1000)
	if got := len(count(keys)); got != 1000 {
		t.Errorf("Each(1000) has %d different keys, want 1000", got)
	}
	if got, want := keys.At(999), "user:00000000999"; got != want {
		t.Errorf("Each(1000).At(999) = %q, want %q", got, want)
	}
}

func TestUniform(t *testing.T) {
	for key, n := range count(workload.Uniform(10, 10_000)) {
		if n < 800 || n > 1200 {
			t.Errorf("%q is asked for %d times of 10000, want about 1000", key, n)
		}
	}
}

// TestZipf checks the share of the most popular of 1000 keys: 1/Σ k^-1.1, which is
// 0.179.
func TestZipf(t *testing.T) {
	most := 0
	for _, n := range count(workload.Zipf(1000, 100_000, 1.1)) {
		most = max(most, n)
	}
	if most < 17_000 || most > 19_000 {
		t.Errorf("the most popular key is asked for %d times of 100000, want about 18000", most)
	}
}

func TestAtDoesNotAllocate(t *testing.T) {
	keys := workload.Each(10)
	var sink string
	if got := testing.AllocsPerRun(100, func() { sink = keys.At(3) }); got != 0 {
		t.Errorf("At allocates %v times, want 0", got)
	}
	_ = sink
}
