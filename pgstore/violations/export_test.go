// SPDX-License-Identifier: Apache-2.0

package violations

import "time"

// ListStatement is what List asks.
func (r *Reader) ListStatement(q Query) (statement string, args []any) { return r.list(q, 50) }

// HistogramStatement is what Histogram asks.
func (r *Reader) HistogramStatement(q Query) (statement string, args []any) {
	return r.histogram(q, time.Minute)
}
