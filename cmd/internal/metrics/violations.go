// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/metehq/mete/pgstore/violations"

func (w writer) violations(s violations.Stats) {
	w.counter("mete_violations_recorded_total", "Denials, shadow rules' included, that were to be recorded.", float64(s.Recorded))
	w.counter("mete_violations_written_total", "Of these, denials that are in the database.", float64(s.Written))
	w.counter("mete_violations_rows_total", "Rows that hold them.", float64(s.Rows))
	w.counter("mete_violations_overflowed_total", "Of the recorded, denials of keys for which there was no room: their number is known, but not whose they were.", float64(s.Overflowed))
	w.counter("mete_violations_dropped_total", "Of the recorded, denials that are not in the database and never will be.", float64(s.Dropped))
	w.counter("mete_violations_failed_total", "Writes that failed, and were tried again.", float64(s.Failed))
	w.gauge("mete_violations_waiting", "Denials that are still to be written.", float64(s.Waiting))
	w.gauge("mete_violations_queue", "Rows that are still to be written.", float64(s.Queue))
}
