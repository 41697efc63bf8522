// SPDX-License-Identifier: Apache-2.0

package ratelimit_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestExample runs the example of doc/envoy.md.
func TestExample(t *testing.T) {
	r := start(t, "RUNTIME_ROOT=../../../examples/envoy/ratelimit")
	const body = `{"domain": "shop", "descriptors": [{"entries": [{"key": "remote_address", "value": "192.0.2.1"}, {"key": "path", "value": "/"}]}]}`
	for i, want := range []int{200, 200, 429} {
		response, err := http.Post("http://"+r.HTTP.String()+"/json", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("call %d: status %d, want %d", i+1, response.StatusCode, want)
		}
	}
}
