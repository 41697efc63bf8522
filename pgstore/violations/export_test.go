// SPDX-License-Identifier: Apache-2.0

package violations

import "time"

// ListStatement returns the statement of List.
func (r *Reader) ListStatement(q Query) (statement string, args []any) { return r.listSQL(q, 50) }

// HistogramStatement returns the statement of Histogram.
func (r *Reader) HistogramStatement(q Query) (statement string, args []any) {
	return r.histogramSQL(q, time.Minute)
}
