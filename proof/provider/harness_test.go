// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/proof/meted"
	"github.com/metehq/mete/proof/provider"
)

func TestMain(m *testing.M) { meted.Main(m) }

// A gateway is a mete serve in front of a simulator.
type gateway struct {
	*meted.Server
	sim *provider.Simulator
	t   *testing.T
}

// start runs mete serve with a policy. The rest of its configuration is optional.
func start(t *testing.T, policy string, config ...string) *gateway {
	t.Helper()
	return startBefore(t, "", policy, config...)
}

// startBefore is start with an upstream that forwards to the simulator, unless it is empty.
func startBefore(t *testing.T, upstream, policy string, config ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{sim: provider.Start(t), t: t}
	text := "policy: policy.yaml\nupstream: " + cmp.Or(upstream, g.sim.URL) + "\n" + strings.Join(config, "\n") + "\n"
	g.Server = meted.Start(t, text, dir)
	return g
}

// A wire is a format, as clients write it. MODEL, MAX and PROMPT are the parts that differ.
type wire struct {
	name         string
	path, stream string // for JSON and for a stream
	body         string
	flag         bool   // the member "stream" of the body asks for a stream
	delta        string // a line of a stream with text has it
	limit, fault string // the end of a stream that was cut
}

var wires = []wire{
	{"chat", "/v1/chat/completions", "/v1/chat/completions", `{"model":"MODEL","max_tokens":MAX,"messages":[{"role":"user","content":"PROMPT"}]}`, true,
		`"delta":`, `"finish_reason":"length"`, `"code":"rate_limit_exceeded"`},
	{"completions", "/v1/completions", "/v1/completions", `{"model":"MODEL","max_tokens":MAX,"prompt":"PROMPT"}`, true,
		`"text":`, `"finish_reason":"length"`, `"code":"rate_limit_exceeded"`},
	{"responses", "/v1/responses", "/v1/responses", `{"model":"MODEL","max_output_tokens":MAX,"input":"PROMPT"}`, true,
		`output_text.delta`, `"response.incomplete"`, `"code":"rate_limit_exceeded"`},
	{"messages", "/v1/messages", "/v1/messages", `{"model":"MODEL","max_tokens":MAX,"messages":[{"role":"user","content":"PROMPT"}]}`, true,
		`text_delta`, `"stop_reason":"max_tokens"`, `"rate_limit_error"`},
	{"gemini", "/v1beta/models/MODEL:generateContent", "/v1beta/models/MODEL:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"PROMPT"}]}],"generationConfig":{"maxOutputTokens":MAX}}`, false,
		`"text":`, `"finishReason":"MAX_TOKENS"`, `"RESOURCE_EXHAUSTED"`},
	{"converse", "/model/MODEL/converse", "/model/MODEL/converse-stream", `{"messages":[{"role":"user","content":[{"text":"PROMPT"}]}],"inferenceConfig":{"maxTokens":MAX}}`, false,
		`"delta":`, `"stopReason":"max_tokens"`, "throttlingException"},
}

// A question is a request of a client.
type question struct {
	wire
	provider.Plan
	stream bool
	model  string
	asks   bool // for the usage of an OpenAI stream
	prompt int  // tokens
	most   int  // max_tokens; 0 asks for no number
	header http.Header
}

func (g *gateway) request(ctx context.Context, q *question) *http.Request {
	path, body := q.path, strings.NewReplacer("PROMPT", provider.Prompt(q.prompt), "MAX", fmt.Sprint(q.most)).Replace(q.body)
	if q.most == 0 {
		body = strings.NewReplacer(`"max_tokens":0,`, "", `"max_output_tokens":0,`, "", `"maxOutputTokens":0`, "", `"maxTokens":0`, "").Replace(body)
	}
	if q.stream {
		path = q.wire.stream
		if q.flag {
			body = strings.TrimSuffix(body, "}") + `,"stream":true}`
		}
		if q.asks {
			body = strings.TrimSuffix(body, "}") + `,"stream_options":{"include_usage":true}}`
		}
	}
	model := strings.NewReplacer("MODEL", cmp.Or(q.model, "m"))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL+model.Replace(path), strings.NewReader(model.Replace(body)))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Team", "red")
	r.Header.Set("X-Case", q.ID)
	q.Set(r.Header)
	for name, values := range q.header {
		r.Header[name] = values
	}
	return r
}

// ask sends a question and reads the whole response.
func (g *gateway) ask(q *question) (*http.Response, string) {
	g.t.Helper()
	return g.askAt(g.URL, q)
}

// askAt sends a question to another address.
func (g *gateway) askAt(address string, q *question) (*http.Response, string) {
	g.t.Helper()
	r := g.request(g.t.Context(), q)
	to, err := url.Parse(address)
	if err != nil {
		g.t.Fatal(err)
	}
	r.URL.Scheme, r.URL.Host, r.Host = to.Scheme, to.Host, to.Host
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil && q.Cut == 0 {
		g.t.Fatalf("%s: %v after %q", q.ID, err, body)
	}
	return res, string(body)
}

// tokensIn returns the tokens of the text in a response, which may end anywhere.
func (q *question) tokensIn(body string) (sum int) {
	if !q.stream || q.name == "converse" {
		return strings.Count(body, provider.Word)
	}
	for line := range strings.Lines(body) {
		if strings.Contains(line, q.delta) && strings.HasPrefix(line, "data:") {
			sum += strings.Count(line, provider.Word)
		}
	}
	return sum
}

// left returns the rest of the budget of a rule. The attributes are of its key.
func (g *gateway) left(rule string, attributes map[string]string) (float64, error) {
	attributes["ai:model"] = "m"
	text, err := json.Marshal(map[string]any{"attributes": attributes})
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.AdminURL+"/v1/peek", strings.NewReader(string(text)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+g.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	var decision struct {
		Limits []struct {
			Rule      string  `json:"rule"`
			Remaining float64 `json:"remaining"`
			Debt      float64 `json:"debt"`
		} `json:"limits"`
	}
	if err := json.Unmarshal(answer, &decision); err != nil {
		return 0, fmt.Errorf("%w: %s", err, answer)
	}
	for _, l := range decision.Limits {
		if l.Rule == rule {
			return l.Remaining - l.Debt, nil
		}
	}
	return 0, fmt.Errorf("no limit of rule %s in %s", rule, answer)
}

// caseBudget is the budget of the rule "each", which counts the tokens of one request.
const caseBudget = 1_000_000

const each = `
  - name: each
    limit_keys: ["header:x-case"]
    on_missing: deny
    match: { "ai:model": "*" }
    group: each
    algorithm: cost_based
    budget: 1000000
    period: month
    timezone: UTC
    cost_source: ai:tokens
`

// charged returns the tokens that a request was charged, by the rule "each".
func (g *gateway) charged(id string) (int, error) {
	left, err := g.left("each", map[string]string{"header:x-case": id, "header:x-team": "red"})
	return caseBudget - int(left), err
}

// wantCharge waits until a request is settled.
func (g *gateway) wantCharge(id string, want int) {
	g.t.Helper()
	testkit.Eventually(g.t, fmt.Sprintf("%s: a charge of %d tokens", id, want), func() error {
		got, err := g.charged(id)
		if err == nil && got != want {
			err = fmt.Errorf("it is %d", got)
		}
		return err
	})
}
