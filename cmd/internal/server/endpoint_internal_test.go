// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete/cmd/internal/metrics"
)

// The paths of Envoy's clients, below /v1/decision, are one endpoint in the metrics.
func TestAPIEndpoint(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/take": metrics.Take, "/v1/decision": metrics.Decision, "/v1/decision/": metrics.Decision, "/v1/decision/v1/take": metrics.Decision,
		"/v1/decisions": "", "/v1/take/x": "", "/v1/peek": "", "/": "",
	} {
		if got := apiEndpoint(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
