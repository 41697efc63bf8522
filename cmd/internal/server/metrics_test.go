// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"
)

func TestRemote_Metrics(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		s := start(t, e.patient(t, burst("2")))
		for range 4 {
			s.take("192.0.2.77")
		}
		s.hasMetrics(
			`mete_decisions_total{by="store",outcome="allowed"} 2`,
			`mete_decisions_total{by="store",outcome="denied"} 2`,
			`mete_breaker_state{state="closed"} 1`,
			`mete_breaker_state{state="open"} 0`,
			`mete_denials_answered_total 1`,
			`mete_store_calls_total{store="`+e.label+`"} 3`,
			`mete_store_asks_total{store="`+e.label+`"} 3`,
			`mete_store_call_seconds_count{store="`+e.label+`"} 3`,
			`mete_store_batch_size_sum{store="`+e.label+`"} 3`,
			`mete_store_in_flight{store="`+e.label+`"} 0`,
			`mete_nodes 1`,
		)
		text := s.metricsText()
		if strings.Contains(text, "192.0.2.77") {
			t.Error("the metrics have a client's address")
		}
		for line, label := range map[string]string{"mete_lease_efficiency 1\n": "redis", `mete_store_swept_total{store="postgres"} `: "postgres"} {
			if got := strings.Contains(text, line); got != (e.label == label) {
				t.Errorf("the metrics have %s: %t, which only %s has", line, got, label)
			}
		}
		if got, _ := get(t, s.main+"/metrics"); got != 404 {
			t.Errorf("metrics on the main address: %d, want 404", got)
		}
	})
}

// metricsText returns the response of /metrics.
func (r *running) metricsText() string {
	r.t.Helper()
	status, text := get(r.t, r.admin+"/metrics")
	if status != 200 {
		r.t.Errorf("metrics: %d %s", status, text)
	}
	return text
}

// hasMetrics is that /metrics has these lines.
func (r *running) hasMetrics(lines ...string) {
	r.t.Helper()
	text := r.metricsText()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			r.t.Errorf("the metrics lack %s:\n%s", line, text)
		}
	}
}

func TestMetrics_InMemory(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	if text := s.metricsText(); !strings.Contains(text, "mete_memory_keys 0\n") || strings.Contains(text, "mete_store_") {
		t.Errorf("got\n%s\nwant the keys in memory, and nothing of a store elsewhere", text)
	}
}
