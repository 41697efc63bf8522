// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/metehq/mete/topkeys"

func (w writer) top(s topkeys.Stats) {
	w.counter("mete_top_recorded_total", "Keys that were counted for mete top: of denials, of shadow rules' denials, and of requests near a limit.", float64(s.Recorded))
	w.counter("mete_top_dropped_total", "Keys that were not, because others were being counted at the same moment, or for want of memory.", float64(s.Dropped))
	w.gauge("mete_top_keys", "Keys that have a counter at this moment.", float64(s.Keys))
	w.gauge("mete_top_bytes", "Memory of these counters.", float64(s.Bytes))
}
