// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/internal/testkit"
)

// A denialEndpoint keeps the lines that it gets, each batch once.
type denialEndpoint struct {
	*httptest.Server
	mu    sync.Mutex
	known map[string]bool
	lines []map[string]any
	bad   []string
	fail  int // requests that are answered with 503, after the batch was kept
}

func newDenialEndpoint(t *testing.T, secret string) *denialEndpoint {
	t.Helper()
	e := &denialEndpoint{known: map[string]bool{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Mete-Signature") != webhook.Sign([]byte(secret), r.Header.Get("X-Mete-Timestamp"), body) || r.Header.Get("Authorization") != "Bearer t" {
			e.bad = append(e.bad, string(body))
		}
		if id := r.Header.Get("Idempotency-Key"); !e.known[id] {
			e.known[id] = true
			for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
				var line map[string]any
				if json.Unmarshal(lines.Bytes(), &line) != nil {
					e.bad = append(e.bad, lines.Text())
				}
				e.lines = append(e.lines, line)
			}
		}
		if e.fail > 0 {
			e.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *denialEndpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lines)
}

// Denials are posted with hashed keys, as the denial log has them. The last ones go at the end.
func TestDenialWebhook(t *testing.T) {
	t.Parallel()
	e := newDenialEndpoint(t, "s3cret")
	e.fail = 1
	c := withTokens()
	c.Policy = policyFile(t, burst("1"))
	c.DenialWebhook.URL, c.DenialWebhook.Secret, c.DenialWebhook.Headers = mustURL(e.URL+"/denials?token=canary"), "s3cret", []string{"authorization=Bearer t"}
	c.DenialWebhook.Batch, c.DenialWebhook.Interval = 2, time.Hour
	c.DenialLog.Interval = 0 // the webhook does not need the log
	s := start(t, c)
	for _, client := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		for range 2 {
			s.take(client)
		}
	}
	testkit.Until(t, "the first batch arrives", func() bool { return e.count() == 2 })
	testkit.Until(t, "the retry is accepted", func() bool {
		_, text := s.as(readerToken, "GET", "/metrics", "")
		return strings.Contains(text, `mete_denial_webhook_lines_total{result="sent"} 2`) && strings.Contains(text, "mete_denial_webhook_waiting 1")
	})
	s.end()
	if got := e.count(); got != 3 {
		t.Errorf("%d lines have arrived after the end, want 3, each once", got)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.lines {
		key, _ := line["key"].(string)
		if line["msg"] != "denied" || line["rule"] != "client" || line["reason"] != "token_bucket_exceeded" || !strings.HasPrefix(key, "~") ||
			line["client"] != "192.0.2.0/24" || line["times"] != 1.0 || line["retry_after"] == nil || line["time"] == nil {
			t.Errorf("line %v", line)
		}
	}
	if len(e.bad) > 0 {
		t.Errorf("without a signature or no JSON: %q", e.bad)
	}
	if log := s.log.String(); strings.Contains(log, "canary") || strings.Contains(log, "s3cret") {
		t.Errorf("the log has a secret:\n%s", log)
	}
}
