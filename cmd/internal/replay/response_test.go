// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
)

const onFailures = `{"name": "guesses", "limit_keys": [], "charge_on": {"status": [401]}, "algorithm_config": {"rate": "2/1d", "burst": 2}}`

// outcomes replays a trace, and returns + for each allowed request and - for each denied one.
func outcomes(t *testing.T, rules, text string, format trace.Format) string {
	t.Helper()
	var all strings.Builder
	err := replay.Run(t.Context(), replay.Config{
		Policy: load(t, rules), Trace: trace.NewReader(strings.NewReader(text), format), Store: memory,
		Each: func(_ *trace.Request, d *mete.Decision) error {
			all.WriteByte(map[bool]byte{true: '+', false: '-'}[d.Allowed])
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// A log has statuses. A line without a status, and one of a client that disconnected, keep their charge.
func TestRun_StatusOfALog(t *testing.T) {
	for statuses, want := range map[string]string{
		"200 200 200 401 401 200": "+++++-",
		"499 - 200":               "++-",
		"500 404 401 302 401 401": "+++++-",
	} {
		var log strings.Builder
		for i, status := range strings.Fields(statuses) {
			fmt.Fprintf(&log, "192.0.2.1 - - [10/Oct/2025:13:55:%02d +0000] \"POST /login HTTP/1.1\" %s 612 \"-\" \"curl\"\n", i, status)
		}
		if got := outcomes(t, onFailures, log.String(), trace.FormatCombined); got != want {
			t.Errorf("%s: got %s, want %s", statuses, got, want)
		}
	}
}

// A log has sizes, and lines of JSON have fields of the response.
func TestRun_CostOfResponses(t *testing.T) {
	const bySize = `{"name": "bytes", "limit_keys": [], "algorithm_config": {"rate": "1/1d", "burst": 10, "charge_on": {"response_bytes": 100}}}`
	const line = "192.0.2.1 - - [10/Oct/2025:13:55:00 +0000] \"GET / HTTP/1.1\" 200 %s\n"
	for sizes, want := range map[string]string{"900 200 1": "++-", "- - 0 1100 1": "++++-"} {
		var log strings.Builder
		for _, size := range strings.Fields(sizes) {
			fmt.Fprintf(&log, line, size)
		}
		if got := outcomes(t, bySize, log.String(), trace.FormatCombined); got != want {
			t.Errorf("%s: got %s, want %s", sizes, got, want)
		}
	}
	const byField = `{"name": "points", "limit_keys": [], "algorithm_config": {"rate": "1/1d", "burst": 10, "cost_source": "response_header:x-cost"}}`
	const text = `{"at": 1, "status": 200, "response_headers": {"X-Cost": "9"}}
{"at": 1, "status": 200, "bytes": 5, "response_headers": {"x-cost": "0"}}
{"at": 1, "status": 200, "response_headers": {"x-cost": "2"}}
{"at": 1, "status": 200}
`
	if got := outcomes(t, byField, text, trace.FormatJSONL); got != "+++-" {
		t.Errorf("got %s, want +++-", got)
	}
}
