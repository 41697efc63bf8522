// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/httplimit"
)

// A client of a language model gets each refusal as an error of its provider, so that its SDK can read the message.
func TestAI_ErrorsOfProviders(t *testing.T) {
	const tokens = `{"name": "chat", "limit_keys": ["header:x-team"], "on_missing": "deny", "algorithm": "token_bucket_llm", "tokens_per_minute": 2000}`
	const message = `"message":"The tokens of this request cannot be counted: `
	const missing = `"message":"The request has no value for an attribute that rule \"chat\" requires."`
	for _, tt := range []struct {
		path, invalid, forbidden, errorType string
	}{
		{chatPath, `{"error":{"code":null,` + message, `{"error":{"code":null,` + missing + `,"param":null,"type":"invalid_request_error"}}`, ""},
		{"/v1/messages", `{"error":{` + message, `{"error":{` + missing + `,"type":"permission_error"},"type":"error"}`, ""},
		{"/v1beta/models/m:generateContent", `{"error":{"code":400,` + message, `{"error":{"code":403,` + missing + `,"status":"PERMISSION_DENIED"}}`, ""},
		{"/model/m/converse", `{` + message, `{` + missing + `}`, "ValidationException AccessDeniedException ThrottlingException"},
	} {
		p := newProvider(t, tokens, func(w http.ResponseWriter, r *http.Request) {})
		var types []string
		post := func(team, body string) (int, string) {
			req, _ := http.NewRequest(http.MethodPost, p.URL+tt.path, strings.NewReader(body))
			if team != "" {
				req.Header.Set("X-Team", team)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, _ := io.ReadAll(res.Body)
			if media := res.Header.Get("Content-Type"); media != "application/json" {
				t.Errorf("%s: Content-Type %q", tt.path, media)
			}
			types = append(types, res.Header.Get("X-Amzn-Errortype"))
			return res.StatusCode, string(got)
		}
		if status, body := post("a", "{"); status != http.StatusBadRequest || !strings.HasPrefix(body, tt.invalid) {
			t.Errorf("%s, invalid: %d %s", tt.path, status, body)
		}
		if status, body := post("", "{}"); status != http.StatusForbidden || body != tt.forbidden+"\n" {
			t.Errorf("%s, without a key: %d %s", tt.path, status, body)
		}
		if status, body := post("b", `{"max_tokens": 3000, "inferenceConfig": {"maxTokens": 3000}, "generationConfig": {"maxOutputTokens": 3000}}`); status != http.StatusTooManyRequests {
			t.Errorf("%s, too many tokens: %d %s", tt.path, status, body)
		}
		if got := strings.TrimSpace(strings.Join(types, " ")); got != tt.errorType {
			t.Errorf("%s: the types of its errors are %q", tt.path, got)
		}
	}
}

func TestWriteProblem(t *testing.T) {
	unavailable := &api.Problem{Title: "Service Unavailable", Status: http.StatusServiceUnavailable, Detail: "Later."}
	bad := &api.Problem{Title: "Bad Gateway", Status: http.StatusBadGateway, Detail: "Gone."}
	for _, tt := range []struct {
		policy, method, path string
		problem              *api.Problem
		want                 string
	}{
		{tokensPolicy, "POST", chatPath, unavailable, `{"error":{"code":null,"message":"Later.","param":null,"type":"server_error"}}`},
		{tokensPolicy, "GET", "/v1/responses", bad, `{"error":{"code":null,"message":"Gone.","param":null,"type":"server_error"}}`},
		{tokensPolicy, "POST", "/v1/messages", unavailable, `{"error":{"message":"Later.","type":"overloaded_error"},"type":"error"}`},
		{tokensPolicy, "POST", "/v1/messages", bad, `{"error":{"message":"Gone.","type":"api_error"},"type":"error"}`},
		{tokensPolicy, "HEAD", chatPath, bad, ``},
		{tokensPolicy, "POST", "/other", bad, `{"title":"Bad Gateway","status":502,"detail":"Gone."`},
		{`{"name": "all", "limit_keys": [], "rate": "1/1s"}`, "POST", chatPath, bad, `{"title":"Bad Gateway","status":502,"detail":"Gone."`},
	} {
		limits := newMiddleware(t, newLimiter(t, still(), tt.policy), httplimit.Config{})
		w := httptest.NewRecorder()
		limits.WriteProblem(w, httptest.NewRequest(tt.method, tt.path, nil), tt.problem)
		if got := w.Body.String(); w.Code != tt.problem.Status || !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s %s: %d %s, want %s", tt.method, tt.path, w.Code, got, tt.want)
		}
	}
}
