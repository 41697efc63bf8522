// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// A collector keeps the OTLP bytes that it receives. These tests search them for secrets; other tests
// check their content.
type collector struct {
	mu       sync.Mutex // guards the fields below
	exported map[string][]byte
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exported[r.URL.Path] = append(c.exported[r.URL.Path], data...)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// At shutdown the server exports all spans and metrics. No client input appears in them, in the log or in
// /metrics.
func TestTelemetry_HasNoSecrets(t *testing.T) {
	collected := &collector{exported: map[string][]byte{}}
	sink := httptest.NewServer(collected)
	t.Cleanup(sink.Close)
	// With this hash key, the rule for 1% of the keys does not apply to the keys below.
	gateway := startGateway(t, fmt.Sprintf("hash_key: 0123456789abcdef0123456789abcdef\ntelemetry: {endpoint: %q, sample: 1}\nlog_level: debug\ntrusted_proxies: [127.0.0.1]\n", sink.URL))
	for i := range 40 {
		send(t.Context(), []string{"GET", "POST", "CANARYMETHOD"}[i%3], gateway.URL+"/canary-path?key=canary-query", "canary-body",
			"X-Api-Key", "canary-key", "X-Tenant", "canary-tenant", "Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.canary-claims.canary-signature",
			"Cookie", "session=canary-cookie", "X-Forwarded-For", "203.0.113.77", "User-Agent", "canary-agent", "Referer", "http://canary-referer/",
			"Baggage", "user=canary-baggage", "Traceparent", "canary-parent")
	}
	shown := metrics(t, gateway)
	if err := gateway.Process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	collected.mu.Lock()
	defer collected.mu.Unlock()
	spans, exported := collected.exported["/v1/traces"], collected.exported["/v1/metrics"]
	if n := bytes.Count(spans, []byte("mete proxy")); n != 40 || !bytes.Contains(spans, []byte("client")) {
		t.Errorf("got %d spans, want 40 that name their rule", n)
	}
	if !bytes.Contains(exported, []byte("mete_rule_decisions_total")) {
		t.Errorf("got %d bytes of metrics, want those of rules", len(exported))
	}
	log := gateway.Log()
	if !strings.Contains(log, "msg=denied") || !strings.Contains(log, "client=203.0.113.0/24") {
		t.Errorf("the log has no denial:\n%s", log)
	}
	for place, text := range map[string]string{"the spans": string(spans), "the exported metrics": string(exported), "/metrics": shown, "the log": log} {
		for _, secret := range []string{"canary", "CANARY", "203.0.113.77", "eyJhbG"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s", place, secret)
			}
		}
	}
}

// A trace goes on to the upstream, below mete's own span.
func TestTelemetry_TraceGoesOn(t *testing.T) {
	sink := httptest.NewServer(&collector{exported: map[string][]byte{}})
	t.Cleanup(sink.Close)
	parents := make(chan string, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { parents <- r.Header.Get("Traceparent") }))
	t.Cleanup(upstream.Close)
	s := meted.Start(t, fmt.Sprintf("upstream: %s\ntelemetry: {endpoint: %q, sample: 0}\n", upstream.URL, sink.URL))
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, flags := range []string{"01", "00"} {
		sent := "00-" + trace + "-" + span + "-" + flags
		send(t.Context(), http.MethodGet, s.URL+"/", "", "Traceparent", sent)
		got := <-parents
		if flags == "00" && got != sent {
			t.Errorf("the upstream got %q, want %q as it came", got, sent)
		}
		if flags == "01" && (!strings.HasPrefix(got, "00-"+trace+"-") || !strings.HasSuffix(got, "-01") || got == sent) {
			t.Errorf("the upstream got %q, want another span of %s", got, sent)
		}
	}
}

// A collector that is away stops no request, is complained about, and does not keep
// the server from ending.
func TestTelemetry_CollectorIsAway(t *testing.T) {
	s := meted.Start(t, fmt.Sprintf("telemetry: {endpoint: \"http://%s\", sample: 1, interval: 1s}\n", proctest.FreeAddr(t)))
	ctx, cancel := context.WithTimeout(t.Context(), meted.Patience)
	defer cancel()
	err := proctest.Poll(ctx, func(ctx context.Context) error {
		send(ctx, http.MethodPost, s.URL+"/v1/take", `{"attributes":{"ip:address":"192.0.2.1"}}`)
		text := metrics(t, s)
		if !strings.Contains(text, `mete_otlp_exports_failed_total{signal="metrics"}`) || strings.Contains(text, `mete_otlp_exports_failed_total{signal="metrics"} 0`) {
			return fmt.Errorf("no failure is counted")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(s.Log(), "telemetry export failed") {
		t.Errorf("nobody complains:\n%s", s.Log())
	}
	if err := s.Process.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
