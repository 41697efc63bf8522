// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metehq/mete/jwtclaims"
)

func (w writer) claims(s jwtclaims.Stats) {
	w.counter("mete_jwt_verified_total", "Bearer tokens that were verified and good.", float64(s.Verified))
	w.counter("mete_jwt_cached_total", "Lookups of claims in tokens that had been verified less than a minute before.", float64(s.Cached))
	refused := prometheus.NewDesc("mete_jwt_refused_total", "Bearer tokens that were refused, so that their claims were missing.", []string{"reason"}, nil)
	for reason, n := range s.Refused {
		w.to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), string(reason))
	}
	w.gauge("mete_jwt_keys", "Keys of the key set that tokens are verified with.", float64(s.Keys))
	w.counter("mete_jwt_key_reads_total", "How often the key set was read.", float64(s.Reads))
	w.counter("mete_jwt_key_reads_failed_total", "How often the key set could not be read.", float64(s.ReadsFailed))
	w.counter("mete_jwt_key_changes_total", "How often the key set had changed, the first time included.", float64(s.Changes))
	if !s.ReadAt.IsZero() {
		w.gauge("mete_jwt_keys_age_seconds", "How long ago the key set was last read.", time.Since(s.ReadAt).Seconds())
	}
}
