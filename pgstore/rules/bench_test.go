// SPDX-License-Identifier: Apache-2.0

package rules_test

import "testing"

// BenchmarkLoad_TenThousandRows measures the time from a change of one of ten thousand rows to the new policy,
// including the read of all rows.
func BenchmarkLoad_TenThousandRows(b *testing.B) {
	d := newDatabase(b)
	d.must(`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity, plan)
		SELECT 'r' || i, 'endpoint:/api/' || i / 10 || '/*:{ip}', 'endpoint', 1, 5, 'plan' || i % 10 FROM generate_series(1, 10000) i`)
	b.ReportAllocs()
	for b.Loop() {
		d.load()
	}
}
