// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

func TestRemote_Metrics(t *testing.T) {
	r := proctest.StartRedis(t)
	s := start(t, withRedis(t, r, burst("2")))
	for range 4 {
		s.take("192.0.2.77")
	}
	text := s.metricsText()
	for _, line := range []string{
		`mete_decisions_total{by="store",outcome="allowed"} 2`,
		`mete_decisions_total{by="store",outcome="denied"} 2`,
		`mete_breaker_state{state="closed"} 1`,
		`mete_breaker_state{state="open"} 0`,
		`mete_denials_answered_total 1`,
		`mete_store_calls_total 3`,
		`mete_store_call_seconds_count 3`,
		`mete_store_batch_size_sum 3`,
		`mete_store_in_flight 0`,
		`mete_lease_efficiency 1`,
		`mete_nodes 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, text)
		}
	}
	if strings.Contains(text, "192.0.2.77") {
		t.Error("the metrics have a client's address")
	}
	if got, _ := get(t, s.main+"/metrics"); got != 404 {
		t.Errorf("metrics on the main address: %d, want 404", got)
	}
}

// metricsText is what /metrics says.
func (r *running) metricsText() string {
	r.t.Helper()
	status, text := get(r.t, r.admin+"/metrics")
	if status != 200 {
		r.t.Errorf("metrics: %d %s", status, text)
	}
	return text
}

func TestMetrics_InMemory(t *testing.T) {
	s := start(t, testConfig())
	if text := s.metricsText(); !strings.Contains(text, "mete_memory_keys 0\n") || strings.Contains(text, "mete_store_") {
		t.Errorf("got\n%s\nwant the keys in memory, and nothing of a store elsewhere", text)
	}
}
