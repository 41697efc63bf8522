// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
	"github.com/metehq/mete/proof/provider"
)

// bundle is a policy as another gateway has it, with a test of mete's beside it.
const bundle = `{
  "bundle_version": 1, "expires_at": "2030-01-01T00:00:00Z",
  "policies": [{"id": "llm-policy", "spec": {
    "selector": {"pathExact": "/v1/chat/completions", "methods": ["POST"]},
    "mode": "enforce",
    "rules": [{
      "name": "llm-token-limit", "limit_keys": ["header:x-org"], "algorithm": "token_bucket_llm",
      "algorithm_config": {
        "algorithm": "token_bucket_llm", "tokens_per_minute": 600, "tokens_per_day": 2000, "burst_tokens": 700,
        "default_max_completion_tokens": 100, "max_prompt_tokens": 400, "max_completion_tokens": 200, "max_tokens_per_request": 500,
        "token_source": {"estimator": "header_hint"},
        "streaming": {"enabled": true, "buffer_tokens": 50, "on_limit_exceeded": "error_chunk", "include_partial_usage": false}
      }
    }],
    "loop_detection": {"enabled": true, "window_seconds": 3600, "threshold_identical_requests": 3, "action": "reject", "similarity": "exact"},
    "circuit_breaker": {"enabled": true, "spend_rate_threshold_per_minute": 650, "action": "reject", "alert": true}
  }}],
  "tests": [{"name": "tokens",
    "request": {"method": "POST", "path": "/v1/chat/completions", "header:x-org": "acme", "ai:model": "m", "ai:prompt_tokens": "100", "ai:max_tokens": "100"},
    "steps": [
      {"times": 3, "expect": "allowed"},
      {"expect": {"denied": "llm-policy/circuit_breaker", "reason": "circuit_breaker_open"}},
      {"with": {"header:x-org": "b", "ai:fingerprint": "f"}, "times": 3, "expect": {"allowed": 2, "denied": "llm-policy/loop_detection"}},
      {"with": {"header:x-org": "c", "ai:prompt_tokens": "401"}, "expect": {"reason": "prompt_tokens_exceeded"}},
      {"with": {"header:x-org": "c", "ai:prompt_tokens": "400", "ai:max_tokens": "101"}, "expect": {"reason": "max_tokens_per_request_exceeded"}}]}]
}`

const recorded = `{"at":1,"method":"POST","path":"/v1/chat/completions","headers":{"x-org":"acme"},"ai":{"model":"m","prompt_tokens":100,"max_tokens":100},"duration":2,"status":200,"usage":{"input":90,"output":10}}
{"at":4,"method":"POST","path":"/v1/chat/completions","headers":{"x-org":"acme"},"ai":{"model":"m","prompt_tokens":300,"max_tokens":200},"duration":2,"status":200,"usage":{"input":300,"output":100}}
{"at":8,"method":"POST","path":"/v1/chat/completions","headers":{"x-org":"acme"},"ai":{"model":"m","prompt_tokens":100,"max_tokens":100},"status":200,"usage":{"input":100,"output":20}}
`

// mete runs a command of mete, which must exit with the status.
func mete(t *testing.T, status int, args ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), meted.Program(t), args...).CombinedOutput()
	if code := exitCode(err); code != status {
		t.Errorf("mete %q exits with %d, want %d: %s", args, code, status, output)
	}
	return string(output)
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

func wantAll(t *testing.T, output string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(output, want) {
			t.Errorf("no %q in:\n%s", want, output)
		}
	}
}

// Each tool that reads a policy knows the limits of language models, the loops and the circuit breaker.
func TestBundle_Tools(t *testing.T) {
	dir := t.TempDir()
	file, trace := filepath.Join(dir, "policy.json"), filepath.Join(dir, "trace.jsonl")
	for path, text := range map[string]string{file: bundle, trace: recorded} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantAll(t, mete(t, 0, "check", file), "tests: 1 passed", "auto_reset_after_minutes")
	wantAll(t, mete(t, 0, "explain", file, "POST /v1/chat/completions", "header:x-org=acme", "ai:model=m", "ai:prompt_tokens=300", "ai:max_tokens=100"),
		"allowed: ", "llm-token-limit/tpm", "llm-token-limit/tpd", "llm-policy/circuit_breaker", "ai:tokens")
	wantAll(t, mete(t, 1, "explain", file, "POST /v1/chat/completions", "header:x-org=acme", "ai:model=m", "ai:prompt_tokens=401"), "prompt_tokens_exceeded")
	// The settled usage counts: 100 and 400 of the breaker's 650, and a reservation of 200 that opens it.
	wantAll(t, mete(t, 0, "replay", file, trace), "3 requests", "denied   1", "llm-policy/circuit_breaker")
}

// The bundle limits a real gateway. An open breaker denies until an administrator resets it.
func TestBundle_Gateway(t *testing.T) {
	g := start(t, bundle)
	n := 0
	ask := func(org, hint string, prompt, most int) (int, string) {
		t.Helper()
		n++
		q := &question{wire: wires[0], prompt: prompt, most: most, Plan: provider.Plan{ID: fmt.Sprint("q", n)}, model: fmt.Sprint("model", n)}
		if org == "loop" {
			q.model = "m"
		}
		q.header = http.Header{"X-Org": {org}}
		if hint != "" {
			q.header.Set("X-Token-Estimate", hint)
		}
		res, body := g.ask(q)
		if res.StatusCode == http.StatusTooManyRequests && res.Header.Get("X-RateLimit-Reason") == "" {
			t.Errorf("a denial without a reason: %s", body)
		}
		return res.StatusCode, res.Header.Get("X-RateLimit-Reason")
	}
	want := func(status int, reason string) func(int, string) {
		return func(gotStatus int, gotReason string) {
			t.Helper()
			if gotStatus != status || gotReason != reason {
				t.Errorf("request %d: %d %s, want %d %s", n, gotStatus, gotReason, status, reason)
			}
		}
	}
	want(200, "")(ask("loop", "", 10, 20))
	want(200, "")(ask("loop", "", 10, 20))
	want(429, "loop_detected")(ask("loop", "", 10, 20))
	want(200, "")(ask("other", "", 10, 20))

	want(429, "prompt_tokens_exceeded")(ask("acme", "401", 10, 20))
	want(429, "max_tokens_per_request_exceeded")(ask("acme", "350", 10, 180))
	want(200, "")(ask("acme", "", 390, 100)) // 410 tokens are used
	want(429, "circuit_breaker_open")(ask("acme", "", 150, 100))
	want(429, "circuit_breaker_open")(ask("acme", "", 1, 1))

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.AdminURL+"/v1/reset",
		strings.NewReader(`{"attributes": {"method": "POST", "path": "/v1/chat/completions", "header:x-org": "acme", "ai:model": "m"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode/100 != 2 {
		t.Fatalf("reset: %s %s", res.Status, body)
	}
	want(200, "")(ask("acme", "", 150, 100))
}

// A rule in shadow reports and does not end a stream, and an override raises a limit of tokens.
func TestBundle_ShadowAndOverride(t *testing.T) {
	const policy = `
rules:
  - name: chat
    limit_keys: ["header:x-team"]
    match: { "ai:model": "*" }
    %s
    algorithm: token_bucket_llm
    tokens_per_minute: 60
    default_max_completion: 20
    streaming: { buffer_tokens: 20 }`
	long := &question{wire: wires[0], stream: true, prompt: 10, Plan: provider.Plan{ID: "long", Events: []int{40, 40, 40, 40, 40}}}

	shadow := start(t, fmt.Sprintf(policy, "mode: shadow"))
	for range 3 {
		if res, body := shadow.ask(long); res.StatusCode != http.StatusOK || long.tokensIn(body) != 200 {
			t.Errorf("shadow: %d with %d tokens", res.StatusCode, long.tokensIn(body))
		}
	}
	enforced := start(t, fmt.Sprintf(policy, "mode: enforce"))
	mete(t, 0, "override", "set", "--action", "limit", "--rule", "chat", "--match", "header:x-team=red", "--rate", "6000/1m", "--burst", "6000", "--reason", "test", "--expires", "1h", "--server", enforced.AdminURL, "--token-file", enforced.TokenFile())
	if res, body := enforced.ask(long); res.StatusCode != http.StatusOK || long.tokensIn(body) != 200 {
		t.Errorf("override: %d with %d tokens: %s", res.StatusCode, long.tokensIn(body), body)
	}
}
