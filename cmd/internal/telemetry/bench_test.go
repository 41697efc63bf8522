// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/telemetry"
)

// BenchmarkWatch measures the cost of telemetry per request: off, with one of 16 requests timed, and
// traced with an exporter that drops all spans.
func BenchmarkWatch(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	tel, err := telemetry.New(b.Context(), telemetry.Config{Endpoint: parsed(collector.URL), Sample: 1, Failed: func(error) {}})
	if err != nil {
		b.Fatal(err)
	}
	defer tel.Close(b.Context())
	decision := &mete.Decision{Allowed: true}
	timed := telemetry.NewWatch(nil, func(string, time.Duration, string) {})
	traced := telemetry.NewWatch(tel, func(string, time.Duration, string) {})
	decide := func(w *telemetry.Watch) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { w.RecordDecision(r.Context(), decision) })
	}
	door := func(*http.Request) string { return "take" }
	for _, bench := range []struct {
		name    string
		handler http.Handler
	}{
		{"unwatched", decide(timed)},
		{"timed", timed.Wrap(door, false, decide(timed))},
		{"traced", traced.Wrap(door, false, decide(traced))},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := httptest.NewRequest("POST", "/v1/take", nil)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				bench.handler.ServeHTTP(w, r)
			}
		})
	}
}
