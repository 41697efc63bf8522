// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

const aiPolicy = `prices:
  version: "2026-11-01"
  unit: US cent
  models:
    gpt-4o: { input: 250, cached: 125, output: 1000 }
    gpt-4o-mini: { input: 15, output: 60 }
rules:
  - name: chat
    limit_keys: ["header:x-user"]
    match: { "ai:model": "*" }
    algorithm: token_bucket_llm
    tokens_per_minute: 1000000
  - name: money
    group: money
    limit_keys: ["header:x-user"]
    match: { "ai:model": "*" }
    rate: 10000/1d
    cost_source: ai:money
loop_detection: { enabled: true, window_seconds: 3600, threshold_identical_requests: 3 }
circuit_breaker: { enabled: true, spend_rate_threshold_per_minute: 15000, auto_reset_after_minutes: 60 }
`

// serveAI runs a gateway in front of a language model that uses 1200 tokens for a prompt and 340 for an answer.
func serveAI(t *testing.T) *browser.Site {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
			"usage": {"prompt_tokens": 1200, "prompt_tokens_details": {"cached_tokens": 200}, "completion_tokens": 340, "total_tokens": 1540}}`)
	}))
	t.Cleanup(model.Close)
	return browser.Serve(t, aiPolicy, "upstream: "+model.URL+"\n")
}

// chat sends a request of a user and returns its status.
func chat(t *testing.T, site *browser.Site, user, model, text string, most int) int {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "max_tokens": %d, "messages": [{"role": "user", "content": %q}]}`, model, most, text)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", user)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// The page shows tokens, money, estimates, loops and open circuit breakers, and closes one.
func TestAI(t *testing.T) {
	t.Parallel()
	site := serveAI(t)
	for i := range 8 {
		chat(t, site, "alice@example.org", []string{"gpt-4o", "gpt-4o-mini"}[i%2], fmt.Sprintf("question %d of alice, with some more words", i), 400)
	}
	for range 5 {
		chat(t, site, "bob", "gpt-4o", "again and again", 400)
	}
	for i := range 2 {
		chat(t, site, "carol", "gpt-4o", fmt.Sprint("a long question ", i), 14000)
	}
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		await(page, site.Page("ai"), "AI")
		page.WaitText("#main", "16.9k tokens in 11 requests")
		page.WaitText("#main", "Open circuit breakers")
		page.WaitText("#main [aria-label='Open circuit breakers']", "x-user carol")
		page.WaitText("#main [aria-label='Loops in the last hour']", "x-user bob")
		page.WaitText("#main [aria-label='Models']", "gpt-4o-mini")
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("ai")
	})

	looker := browser.Open(t, browser.Narrow, browser.Light)
	looker.Remember(browser.ReadToken)
	await(looker, site.Page("ai"), "AI")
	looker.WaitText("#main", "To see keys, you need the role operate")
	looker.WaitText("#main [aria-label='Loops in the last hour']", "x-user")
	if browser.Eval[bool](looker, "document.documentElement.outerHTML.includes('example.org')") {
		t.Error("the page has a key, which its viewer may not see")
	}
	looker.CheckNoOverflow()
	looker.ScreenshotAll("ai-masked")

	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("ai"), "AI")
	page.WaitText("#main [aria-label='Open circuit breakers']", "x-user carol")
	page.In("[aria-label='Open circuit breakers']").Click("button", "Reset")
	dialog := page.In("dialog[open]")
	dialog.Fill("Reason", "the loop is repaired")
	dialog.Click("button", "Reset")
	page.WaitText("#main", "No circuit breaker is open.")
	if status := chat(t, site, "carol", "gpt-4o", "a short question", 100); status != http.StatusOK {
		t.Errorf("the request after the reset: %d", status)
	}
}

// Without limits of tokens, the page tells how to add one, and the navigation leaves it out.
func TestAI_NotCounted(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, slowPolicy) // it stops last, because the page calls it until the end
	page := browser.Open(t, browser.Desktop, browser.Dark)
	page.Remember(browser.ReadToken)
	await(page, site.Page("overview"), "Overview")
	page.Poll("the navigation has no AI", "![...document.querySelectorAll('.nav-link')].some(a => a.title === 'AI')")
	page.Goto(site.Page("ai"))
	page.WaitText("#main", "No rule of the policy counts tokens")
	page.CheckNoOverflow()
	page.Axe()
	page.Screenshot("ai-none")
}
