// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

func TestAI_RefusedCoding(t *testing.T) {
	for accepted, want := range map[string]string{"gzip": "gzip", "br, GZIP;q=0.5": "gzip", "gzip;q=0, br": "identity", "gzip; q=0.0": "identity", "br": "identity"} {
		var got string
		p := newProvider(t, tokensPolicy, func(w http.ResponseWriter, r *http.Request) { got = r.Header.Get("Accept-Encoding") })
		req, _ := http.NewRequest(http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(chatRequest))
		req.Header["Accept-Encoding"] = []string{accepted}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); got != want {
			t.Errorf("a client that accepts %q: %q, want %q", accepted, got, want)
		}
	}
}

func TestAI_InvalidRequests(t *testing.T) {
	p := newProvider(t, `{"rules": [{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 100000, "max_prompt_tokens": 1000}]}`,
		func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) })
	if res, body := p.post("/v1/chat/completions", `{"model": "m", "messages": [`); res.StatusCode != http.StatusBadRequest || !strings.Contains(body, "tokens of this request cannot be counted") {
		t.Errorf("invalid JSON: %d %s", res.StatusCode, body)
	}
	long := fmt.Sprintf(`{"model": "m", "messages": [{"role": "user", "content": %q}]}`, strings.Repeat("x", 2<<20))
	if res, body := p.post("/v1/chat/completions", long); res.StatusCode != http.StatusTooManyRequests || res.Header.Get("X-RateLimit-Reason") != policy.ReasonPromptTokens || !strings.Contains(body, "more tokens than rule") {
		t.Errorf("a body of 2 MiB: %d %s", res.StatusCode, body)
	}
	req, _ := http.NewRequest(http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader("????"))
	req.Header.Set("Content-Encoding", "br")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a compressed request: %d", res.StatusCode)
	}
}

// Each byte of a long body counts, so that its length must be known.
func TestAI_UnknownLength(t *testing.T) {
	p := newProvider(t, strings.Replace(tokensPolicy, "1000/1m", "10000000/1m", 1), func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) })
	for _, tt := range []struct{ bytes, status int }{{1 << 10, http.StatusOK}, {2 << 20, http.StatusBadRequest}} {
		body := fmt.Sprintf(`{"model": "m", "messages": [{"role": "user", "content": %q}]}`, strings.Repeat("x", tt.bytes))
		res, err := http.Post(p.URL+"/v1/chat/completions", "application/json", io.MultiReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		detail, _ := io.ReadAll(res.Body)
		if res.Body.Close(); res.StatusCode != tt.status || tt.status != http.StatusOK && !strings.Contains(string(detail), "send it with a Content-Length") {
			t.Errorf("%d bytes: %d %s", tt.bytes, res.StatusCode, detail)
		}
	}
}

// A denied client of a language model gets the error of its provider, unless the policy defines another.
func TestAI_DenialsOfProviders(t *testing.T) {
	const rules = `"rules": [{"name": "chat", "limit_keys": [], "algorithm": "token_bucket_llm", "tokens_per_minute": 2000, "max_prompt_tokens": 5}]`
	for path, want := range map[string]string{
		"/v1/chat/completions": `"error":{"message":`, "/v1/messages": `"type":"error"`, "/v1beta/models/gemini-pro:generateContent": `"status":"RESOURCE_EXHAUSTED"`,
		"/model/claude/converse": `{"message":"`, "/other": `"violated-policies":["chat/tpm"]`,
	} {
		p := newProvider(t, `{`+rules+`}`, func(w http.ResponseWriter, r *http.Request) {})
		p.post("/other", "{}") // spends half of the tokens
		p.post("/other", "{}")
		if res, body := p.post(path, chatRequest); res.StatusCode != http.StatusTooManyRequests || !strings.Contains(strings.ReplaceAll(body, " ", ""), want) {
			t.Errorf("%s: %d %s, want %s", path, res.StatusCode, body, want)
		}
	}
	p := newProvider(t, `{`+rules+`}`, func(w http.ResponseWriter, r *http.Request) {})
	if res, _ := p.post("/v1/chat/completions", chatRequest); res.Header.Get("X-Should-Retry") != "false" || res.Header.Get("Retry-After") != "" {
		t.Errorf("a request that no wait helps: %v", res.Header)
	}
	p = newProvider(t, `{"denial": {"body": "enough"}, `+rules+`}`, func(w http.ResponseWriter, r *http.Request) {})
	if _, body := p.post("/v1/chat/completions", chatRequest); body != "enough" {
		t.Errorf("the body of the policy: %s", body)
	}
}

// Requests that hide their model, their maximum or their usage are refused, or charged under the rule of all models.
func TestAI_NoRequestEscapes(t *testing.T) {
	messages := `"messages": [{"role": "user", "content": "hello"}]`
	for _, tt := range []struct {
		what, path, body string
		status           int
	}{
		{"no model", "/v1/chat/completions", `{` + messages + `}`, 429},
		{"another case of the path", "/v1/Chat/Completions", `{"model": "m", ` + messages + `}`, 429},
		{"a model behind the bound", "/v1/chat/completions", `{` + messages + `,` + strings.Repeat(" ", 1<<20) + `"model": "m"}`, 400},
		{"a long body", "/v1/chat/completions", `{"model": "m", ` + messages + `,` + strings.Repeat(" ", 1<<20) + `"max_tokens": 1}`, 429},
		{"a member twice", "/v1/chat/completions", `{"model": "m", "n": 1, "n": 2, ` + messages + `}`, 400},
		{"a member twice, null", "/v1/chat/completions", `{"model": "m", "max_tokens": 1, "max_tokens": null, ` + messages + `}`, 400},
		{"another spelling", "/v1/chat/completions", `{"model": "m", "Model": "n", ` + messages + `}`, 400},
		{"options twice", "/v1/chat/completions", `{"model": "m", "stream": true, "stream_options": {"include_usage": true}, "stream_options": {}, ` + messages + `}`, 400},
		{"a response in the background", "/v1/responses", `{"model": "m", "input": "hello", "background": true}`, 400},
		{"several completions", "/v1/chat/completions", `{"model": "m", "n": 5, ` + messages + `}`, 429},
	} {
		for _, estimator := range []string{"simple_word", "header_hint", "tiktoken", "learned"} {
			tokens := map[int]int{429: 2500, 400: 10_000_000}[tt.status] // a denial would hide an invalid request
			p := newProvider(t, fmt.Sprintf(`{"rules": [{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "algorithm": "token_bucket_llm", "tokens_per_minute": %d,
				"token_source": {"estimator": %q}}]}`, tokens, estimator), func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) })
			p.post("/v1/chat/completions", chatRequest)
			p.post("/v1/chat/completions", `{"model": "m", "max_tokens": 1900, `+messages+`}`) // an empty answer keeps the reservation
			if res, body := p.post(tt.path, tt.body); res.StatusCode != tt.status {
				t.Errorf("%s, %s: %d %s", tt.what, estimator, res.StatusCode, body)
			}
		}
	}
}

// A server that streams its response while it receives the request is not disturbed, and neither are other APIs.
func TestAI_LeavesOtherRequestsAlone(t *testing.T) {
	p := newProvider(t, `{"rules": [{"name": "r", "limit_keys": [], "rate": "100/1s"}], "loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2}}`,
		func(w http.ResponseWriter, r *http.Request) {})
	if res, body := p.post("/api/v1/messages", "subject=hello"); res.StatusCode != http.StatusOK {
		t.Errorf("a form: %d %s", res.StatusCode, body)
	}
	for i := range 3 { // without a length
		req, _ := http.NewRequest(http.MethodPost, p.URL+"/upload", io.MultiReader(strings.NewReader("part"), strings.NewReader("s")))
		if res, err := http.DefaultClient.Do(req); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("upload %d: %v %v", i, res, err)
		}
	}
}

func TestAI_LoopIgnoresTheFormOfJSON(t *testing.T) {
	p := newProvider(t, `{"rules": [{"name": "r", "limit_keys": [], "rate": "100/1s"}], "loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 3}}`,
		func(w http.ResponseWriter, r *http.Request) {})
	for i, tt := range []struct {
		path, body string
		status     int
	}{
		{"/a?x=1&y=2", `{"a": 1, "b": 2}`, 200},
		{"/a?y=2&x=1", `{"b":2,"a":1}`, 200},
		{"/a?y=2&x=1", `{"b":2,"a":1.0}`, 200},
		{"/a?x=1&y=2", `{"a":1,  "b":2}`, 429},
		{"/b?x=1&y=2", `{"a":1,  "b":2}`, 200},
	} {
		if res, body := p.post(tt.path, tt.body); res.StatusCode != tt.status {
			t.Errorf("request %d: %d %s", i, res.StatusCode, body)
		}
	}
}

// A body without a length is read for its tokens, so a loop of such requests is found, too. A long body counts by its beginning
// and its length.
func TestAI_LoopsWithoutALength(t *testing.T) {
	const loops = `{"rules": [{"name": "r", "limit_keys": [], "rate": "100/1s"}], "loop_detection": {"enabled": true, "window_seconds": 60, "threshold_identical_requests": 2}}`
	long := func(end string) string {
		return `{"model": "m", "messages": [{"role": "user", "content": "` + strings.Repeat("x", 1<<20) + end + `"}]}`
	}
	for _, tt := range []struct {
		what          string
		first, second string
		hidesLength   bool
		status        int
	}{
		{"without a length", chatRequest, chatRequest, true, 429},
		{"another request without a length", chatRequest, chatStream, true, 200},
		{"long", long(""), long(""), false, 429},
		{"another length", long(""), long("y"), false, 200},
		{"long and without a length", long(""), long("y"), true, 200},
	} {
		p := newProvider(t, loops, func(w http.ResponseWriter, r *http.Request) {})
		post := func(text string) int {
			var body io.Reader = strings.NewReader(text)
			if tt.hidesLength {
				body = io.MultiReader(body)
			}
			res, err := http.Post(p.URL+chatPath, "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		if got := post(tt.first); got != http.StatusOK {
			t.Errorf("%s: the first got %d", tt.what, got)
		}
		if got := post(tt.second); got != tt.status {
			t.Errorf("%s: the second got %d, want %d", tt.what, got, tt.status)
		}
	}
}

// A request that a server could take for a call to a model is refused if a rule counts tokens.
func TestAI_RefusesHiddenCalls(t *testing.T) {
	const tokens = `{"rules": [{"name": "chat", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "1000/1m", "cost_source": "ai:tokens"}]}`
	const requests = `{"rules": [{"name": "all", "limit_keys": [], "rate": "100/1s"}]}`
	for _, tt := range []struct {
		method, path, field, value string
		policy                     string
		status                     int
	}{
		{"GET", "/v1/responses", "Upgrade", "websocket", tokens, 400},
		{"GET", "/V1/Responses/", "Upgrade", "h2c, WebSocket", tokens, 400},
		{"POST", chatPath, "Upgrade", "websocket", tokens, 400},
		{"POST", chatPath, "Upgrade", "h2c", tokens, 200}, // Java's client
		{"GET", "/v1/realtime", "Upgrade", "websocket", tokens, 200},
		{"GET", "/v1/responses", "Upgrade", "websocket", requests, 200},
		{"GET", "/v1/responses", "Upgrade", "websocket", strings.Replace(tokens, `"name"`, `"mode": "shadow", "name"`, 1), 200},
		{"PUT", chatPath, "X-HTTP-Method-Override", "POST", tokens, 400},
		{"GET", "/v1beta/models/m:generateContent", "X-HTTP-Method", "POST", tokens, 400},
		{"PUT", chatPath, "X-HTTP-Method-Override", "POST", requests, 200},
		{"PUT", "/v1/files", "X-HTTP-Method-Override", "POST", tokens, 200},
		{"PUT", chatPath, "X-Other", "POST", tokens, 200},
	} {
		p := newProvider(t, tt.policy, func(w http.ResponseWriter, r *http.Request) {})
		req, _ := http.NewRequest(tt.method, p.URL+tt.path, strings.NewReader(chatRequest))
		req.Header.Set(tt.field, tt.value)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status {
			t.Errorf("%s %s with %s: %s: status %d, want %d", tt.method, tt.path, tt.field, tt.value, res.StatusCode, tt.status)
		}
	}
}

// The model of the path is the one that counts, and a second model is refused where servers differ.
func TestAI_ModelOfThePath(t *testing.T) {
	const money = `{"prices": {"version": "1", "unit": "cent", "models": {"cheap": {"input": 10000, "output": 10000}, "dear": {"input": 1000000, "output": 1000000}}},
		"rules": [{"name": "money", "limit_keys": [], "match": {"ai:model": "*"}, "rate": "1000000/1m", "cost_source": "ai:money"}]}`
	for path, status := range map[string]int{
		"/openai/Deployments/dear/chat/completions":    200,
		"/openai/deployments/dear/v1/chat/completions": 200,
		"/engines/dear/chat/completions":               400,
		"/engines/dear/completions":                    400,
	} {
		p := newProvider(t, money, func(w http.ResponseWriter, r *http.Request) { chatAnswer(w) })
		res, body := p.post(path, `{"model": "cheap", "messages": []}`)
		if res.StatusCode != status {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
		if s := <-p.settled; status == 200 && s.Charged != 20*bucket.Token { // 20 tokens
			t.Errorf("%s: charged %v", path, s.Charged)
		}
	}
}
