// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"
)

// Only the admin address serves top keys. Raw keys need the operate role.
func TestTop_Roles(t *testing.T) {
	t.Parallel()
	c := withTokens()
	c.PublicMetrics = true
	c.Policy = policyFile(t, burst("2"))
	s := start(t, c)
	for range 5 {
		s.take("192.0.2.77")
	}
	for _, tt := range []struct {
		token  string
		status int
		raw    bool
	}{
		{"", http.StatusUnauthorized, false},
		{readerToken, http.StatusOK, false},
		{operatorToken, http.StatusOK, true},
		{ownerToken, http.StatusOK, true},
	} {
		status, text := s.as(tt.token, "GET", "/v1/top?rule=client", "")
		if status != tt.status || strings.Contains(text, "192.0.2.77") != tt.raw || status == 200 && !strings.Contains(text, `"count":3,"error":0`) {
			t.Errorf("GET /v1/top with the token %q: %d %s, want %d and the key %t", tt.token, status, text, tt.status, tt.raw)
		}
	}
	if status, text := s.as(readerToken, "GET", "/v1/top?kind=near", ""); status != 200 || !strings.Contains(text, `"total":1,`) {
		t.Errorf("near a limit: %d %s, want one", status, text)
	}
	if status, _ := get(t, s.main+"/v1/top"); status != http.StatusNotFound {
		t.Errorf("GET /v1/top on the main address: %d, want 404", status)
	}
	s.hasMetrics("mete_top_recorded_total 4", "mete_top_dropped_total 0", "mete_top_keys 2")
}

// Two servers with the same hash key mask a key in the same way.
func TestTop_MasksAlike(t *testing.T) {
	t.Parallel()
	masked := func(hashKey string) string {
		c := withTokens()
		c.Policy, c.HashKey = policyFile(t, burst("1")), hashKey
		s := start(t, c)
		s.take("192.0.2.77")
		s.take("192.0.2.77")
		_, text := s.as(readerToken, "GET", "/v1/top", "")
		_, rest, _ := strings.Cut(text, `"key":"`)
		key, _, _ := strings.Cut(rest, `"`)
		if !strings.HasPrefix(key, "client:~") {
			t.Errorf("GET /v1/top: %s, want a masked key", text)
		}
		return key
	}
	if one, two, other := masked("k1"), masked("k1"), masked("k2"); one != two || one == other {
		t.Errorf("masked keys %s and %s with one hash key, %s with another", one, two, other)
	}
}

func TestTop_Off(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.TopKeys, c.Policy = 0, policyFile(t, burst("1"))
	s := start(t, c)
	s.take("192.0.2.77")
	s.take("192.0.2.77")
	if status, text := get(t, s.admin+"/v1/top"); status != http.StatusNotFound || !strings.Contains(text, "if the server counts them") {
		t.Errorf("GET /v1/top: %d %s, want 404", status, text)
	}
	if strings.Contains(s.metricsText(), "mete_top_") {
		t.Error("there are metrics of keys that are not counted")
	}
}
