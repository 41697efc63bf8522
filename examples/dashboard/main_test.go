// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	l, err := newLimits()
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	handler, err := l.handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	get := func(path string) (int, string) {
		resp, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	for i, want := range []int{200, 200, 200, 200, 200, 429} {
		if got, _ := get("/"); got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	for path, want := range map[string]string{
		"/limits/dashboard/":            "<title>",
		"/limits/dashboard/ui/base.css": "{",
		"/limits/v1/me":                 `"name":"this machine"`,
		"/limits/v1/top?kind=denied":    `"total":1`,
		"/limits/v1/overrides":          `"overrides":[]`,
	} {
		if status, body := get(path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s, want %s", path, status, body, want)
		}
	}
	r := httptest.NewRequest("GET", "http://evil.example:8000/limits/v1/me", nil)
	r.RemoteAddr = "127.0.0.1:999"
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d for a page of another name, want 403", w.Code)
	}
}
