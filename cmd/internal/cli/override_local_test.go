// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// --local asks for an override in that server alone, and the list names the server as its place.
func TestOverride_Local(t *testing.T) {
	const made = `{"id":"fire","action":"break_glass","reason":"r","author":"kim","expires_at":"2099-01-01T00:00:00Z","state":"in_force","source":"local"}`
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPut {
			_, _ = io.WriteString(w, made)
			return
		}
		_, _ = io.WriteString(w, `{"persistent":true,"overrides":[`+made+`],"audit":[]}`)
	}))
	defer s.Close()
	wantRun(t, 0, `fire: break_glass .*\n`, "", "override", "set", "--server", s.URL, "--local", "--action", "break_glass", "--expires", "10m", "--reason", "r")
	wantRun(t, 0, `.*fire +break_glass .*this server.*\n`, "", "override", "list", "--server", s.URL)
	if got := strings.Join(asked, ", "); got != "PUT /v1/overrides?local=true, GET /v1/overrides?audit=0" {
		t.Errorf("asked %s", got)
	}
}
