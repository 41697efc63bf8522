// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/internal/testkit"
)

// hasMetric is that one of the metrics has this value, sooner or later.
func (r *running) hasMetric(line string) {
	r.t.Helper()
	testkit.Until(r.t, line, func() bool { return strings.Contains(r.metricsText(), line+"\n") })
}

func TestMetrics_OfReloads(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("2"))
	s := start(t, c)
	s.take("192.0.2.1")
	s.hasMetrics(`mete_policy_reload_failing 0`, `mete_policy_reloads_total{result="applied"} 0`, `mete_policy_rules 1`,
		`mete_rule_decisions_total{outcome="allowed",rule="client"} 1`, `mete_http_in_flight{listener="admin"} 1`)

	write(t, c.Policy, "rules: broken")
	s.hasMetric(`mete_policy_reload_failing 1`)
	s.take("192.0.2.1")
	s.take("192.0.2.1")
	s.hasMetrics(`mete_policy_reloads_total{result="failed"} 1`, `mete_rule_decisions_total{outcome="denied",rule="client"} 1`)

	write(t, c.Policy, strings.Replace(burst("3"), "client", "renamed", 1))
	s.hasMetric(`mete_policy_reload_failing 0`)
	s.hasMetrics(`mete_policy_reloads_total{result="applied"} 1`, `mete_rule_decisions_total{outcome="allowed",rule="renamed"} 0`)
	if text := s.metricsText(); strings.Contains(text, `rule="client"`) {
		t.Error("a rule that is gone has series still")
	}
}

// A file that cannot be read for a moment, and is then what it was, is in order
// again.
func TestMetrics_OfAFileThatComesBack(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("2"))
	s := start(t, c)
	write(t, c.Policy, strings.Repeat("#", 32<<20)) // more than a policy may have
	s.hasMetric(`mete_policy_reload_failing 1`)
	write(t, c.Policy, burst("2"))
	s.hasMetric(`mete_policy_reload_failing 0`)
}

func TestMetrics_OfStoreOperations(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		s := start(t, e.patient(t, burst("2")))
		s.take("192.0.2.78")
		s.hasMetrics(`mete_store_operation_seconds_count{operation="take"} 1`)
	})
}

// The server logs denials without client identities, unless the settings turn the log off.
func TestDenialLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		set  func(*config.Config)
		want []string // in the log; none is no denial
	}{
		{"as it is", func(*config.Config) {}, []string{"msg=denied", "rule=client", "key=~", "times=1"}},
		{"raw", func(c *config.Config) { c.DenialLog.Raw = true }, []string{"msg=denied", "192.0.2.99", "times=1"}},
		{"off", func(c *config.Config) { c.DenialLog.Interval = 0 }, nil},
	} {
		c := testConfig()
		c.Policy = policyFile(t, burst("1"))
		tt.set(&c)
		s := start(t, c)
		for range 5 {
			s.take("192.0.2.99")
		}
		text := s.log.String()
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the log lacks %s:\n%s", tt.name, want, text)
			}
		}
		if n := s.log.Count("denied"); n != min(len(tt.want), 1) {
			t.Errorf("%s: %d lines are of denials", tt.name, n)
		}
		if !c.DenialLog.Raw && strings.Contains(text, "192.0.2.99") {
			t.Errorf("%s: the log has the client's address", tt.name)
		}
	}
}

// The server times a sample of requests on every endpoint.
func TestDecisions_AreTimed(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	gateway := testConfig()
	gateway.Upstream = mustURL(upstream.URL)
	for door, c := range map[string]config.Config{"take": testConfig(), "proxy": gateway} {
		c.Policy = policyFile(t, burst("1000"))
		s := start(t, c)
		testkit.Until(t, door+" is timed", func() bool {
			if door == "take" {
				s.take("192.0.2.1")
			} else {
				get(t, s.main+"/")
			}
			text := s.metricsText()
			return strings.Contains(text, `mete_decision_seconds_count{door="`+door+`"}`)
		})
	}
}

// At shutdown, the server sends the remaining telemetry to the collector, with the configured headers.
func TestTelemetry_IsFlushedAtTheEnd(t *testing.T) {
	t.Parallel()
	var traces, metrics atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant") != "a=b" {
			t.Errorf("X-Tenant is %q, want a=b", r.Header.Get("X-Tenant"))
		}
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/otlp/v1/traces":
			traces.Add(int64(strings.Count(string(body), "mete take")))
		case "/otlp/v1/metrics":
			metrics.Add(1)
		}
	}))
	t.Cleanup(collector.Close)
	c := testConfig()
	c.Telemetry = config.Telemetry{Endpoint: mustURL(collector.URL + "/otlp/"), Headers: []string{"x-tenant=a=b"}, Sample: 1, Interval: time.Hour}
	s := start(t, c)
	for range 10 {
		s.take("192.0.2.1")
	}
	s.stop()
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	if traces.Load() != 10 || metrics.Load() != 1 {
		t.Errorf("the collector got %d spans and %d exports of metrics, want 10 and 1", traces.Load(), metrics.Load())
	}
}
