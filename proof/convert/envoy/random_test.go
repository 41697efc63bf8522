// SPDX-License-Identifier: Apache-2.0

package envoy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomValues are the values of random descriptors. randomPatterns are the values of random
// configurations, which overlap.
var (
	randomValues   = []string{"x", "xy", "xyz", "y", "z"}
	randomPatterns = []string{"", "x", "xy", "x*", "xy*", "*"}
)

// randomConfig returns a configuration with a limit for each key, because mete does not see
// entries with other keys. Keys rise along each path, because mete does not see the order
// of entries. Both are in the list of differences.
func randomConfig(r *rand.Rand) []byte {
	var b strings.Builder
	b.WriteString("domain: shop\ndescriptors:\n")
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		writeLimited(&b, r, key, "x", "  ")
	}
	writeDescriptors(&b, r, keys, "  ", "x")
	return []byte(b.String())
}

// writeDescriptors writes random siblings with these keys, except the value that is there.
func writeDescriptors(b *strings.Builder, r *rand.Rand, keys []string, indent string, there ...string) {
	for i, key := range keys {
		patterns := slices.Clone(randomPatterns)
		r.Shuffle(len(patterns), func(i, j int) { patterns[i], patterns[j] = patterns[j], patterns[i] })
		for _, pattern := range patterns[:r.IntN(len(patterns))] {
			if slices.Contains(there, pattern) {
				continue
			}
			deeper := len(keys) > i+1 && r.IntN(2) == 0
			if limited := r.IntN(3) > 0; limited || !deeper {
				writeLimited(b, r, key, pattern, indent)
			} else {
				fmt.Fprintf(b, "%s- key: %s\n%s  value: %q\n", indent, key, indent, pattern)
			}
			if deeper {
				var below strings.Builder
				writeDescriptors(&below, r, keys[i+1:], indent+"    ")
				if below.Len() > 0 {
					fmt.Fprintf(b, "%s  descriptors:\n%s", indent, below.String())
				}
			}
		}
	}
}

// writeLimited writes a descriptor with a random limit.
func writeLimited(b *strings.Builder, r *rand.Rand, key, pattern, indent string) {
	fmt.Fprintf(b, "%s- key: %s\n%s  value: %q\n", indent, key, indent, pattern)
	switch r.IntN(8) {
	case 0:
		fmt.Fprintf(b, "%s  rate_limit: {unlimited: true}\n", indent)
		return
	case 1:
		fmt.Fprintf(b, "%s  shadow_mode: true\n", indent)
	case 2:
		fmt.Fprintf(b, "%s  quota_mode: true\n", indent)
	case 3:
		if strings.HasSuffix(pattern, "*") {
			fmt.Fprintf(b, "%s  share_threshold: true\n", indent)
		}
	}
	units := []string{"day", "month", "year"}
	fmt.Fprintf(b, "%s  rate_limit: {unit: %s, requests_per_unit: %d}\n", indent, units[r.IntN(len(units))], r.IntN(4))
}
