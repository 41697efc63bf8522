// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The emergency switch works in the emergency: while the store is down, and a rule refuses
// everybody for that.
func TestLocalOverride_StoreDown(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, e remoteStore) {
		c := e.with(t, onError("closed"))
		c.AdminTokens, c.HashKey = withTokens().AdminTokens, "the same key for both of them"
		s := start(t, c)
		if status, text := s.takePath("/closed"); status != http.StatusOK {
			t.Fatalf("with the store: %d %s", status, text)
		}
		e.server.Kill()
		if status, text := s.takePath("/closed"); status != http.StatusServiceUnavailable {
			t.Fatalf("without the store: %d %s, want that the rule refuses it", status, text)
		}
		body := fmt.Sprintf(`{"id":"fire","action":"break_glass","reason":"the store is down","author":"kim","expires_at":%q}`,
			time.Now().Add(10*time.Minute).UTC().Format(time.RFC3339))
		if status, text := s.as(ownerToken, "PUT", "/v1/overrides", body); status != http.StatusServiceUnavailable {
			t.Errorf("a shared override without the store: %d %s", status, text)
		}
		for _, token := range []string{readerToken, operatorToken} {
			if status, text := s.as(token, "PUT", "/v1/overrides?local=true", body); status != http.StatusForbidden {
				t.Errorf("with a lower role: %d %s", status, text)
			}
		}
		if status, text := s.as(ownerToken, "PUT", "/v1/overrides?local=true", body); status != http.StatusOK || !strings.Contains(text, `"source":"local"`) {
			t.Fatalf("a local override without the store: %d %s", status, text)
		}
		if status, text := s.takePath("/closed"); status != http.StatusOK {
			t.Errorf("with the glass broken: %d %s", status, text)
		}
		if _, text := s.as(readerToken, "GET", "/v1/overrides", ""); !strings.Contains(text, `"source":"local"`) {
			t.Errorf("the list: %s", text)
		}
		if _, text := s.as(readerToken, "GET", "/metrics", ""); !strings.Contains(text, "mete_break_glass 1") {
			t.Error("mete_break_glass is not 1")
		}
		if status, text := s.as(ownerToken, "DELETE", "/v1/overrides/fire?author=kim&reason=over", ""); status != http.StatusOK {
			t.Errorf("remove: %d %s", status, text)
		}
		if status, text := s.takePath("/closed"); status != http.StatusServiceUnavailable {
			t.Errorf("after its removal: %d %s", status, text)
		}
		list := s.activity(readerToken)
		if len(list) < 2 || list[0].What != "overrides DELETE" || list[1].What != "overrides PUT" || list[1].By != "deploy" || list[1].Status != http.StatusOK {
			t.Errorf("activity %+v", list)
		}
		if s.log.Count(`msg="local override made" id=fire action=break_glass`) != 1 || s.log.Count("local override removed") != 1 {
			t.Errorf("log:\n%s", s.log)
		}
	})
}
