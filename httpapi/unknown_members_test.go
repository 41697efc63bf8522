// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// A body has each member once and in the letters of openapi.json, at every depth.
func TestBodies_MembersOnceAndAsSpelled(t *testing.T) {
	h := newLive(t, liveConfig{Live: httpapi.Live{}})
	for body, want := range map[string]string{
		`{"text": "GET /x", "text": "GET /y"}`:                   "duplicate member /text",
		`{"text": "GET /x", "TEXT": "GET /y"}`:                   "unknown member /TEXT",
		`{"lanes": [{"name": "a"}, {"name": "b", "Name": "c"}]}`: "unknown member /lanes/1/Name",
	} {
		path := "/v1/request"
		if strings.Contains(body, "lanes") {
			path = "/v1/play"
		}
		if w := askAs(h, "r", "POST", path, body); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 400 with %q", body, w.Code, w.Body, want)
		}
	}
}
