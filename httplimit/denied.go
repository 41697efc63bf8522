// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/denialbody"
)

// modelDenials are the errors that clients of language models expect. A denial of the policy replaces them.
var modelDenials = map[ai.Format]*denialbody.Answer{
	ai.OpenAIChat: {Format: "openai"}, ai.OpenAICompletions: {Format: "openai"}, ai.OpenAIResponses: {Format: "openai"},
	ai.Anthropic: {Format: "anthropic"}, ai.Gemini: {Format: "gemini"}, ai.Bedrock: {Body: bedrockDenial},
}

var bedrockDenial, _ = denialbody.Parse(`{"message":"{{message}}"}`, "application/json") // a test covers it

func (m *Middleware) deny(w http.ResponseWriter, r *http.Request, d *mete.Decision, a *attempt) {
	m.shareDenial(w.Header(), r)
	client := a.client(d)
	if m.denied == nil {
		format := m.modelFormat(r)
		if format != 0 && d.RetryAfter == bucket.Never {
			w.Header()["X-Should-Retry"] = []string{"false"} // the SDKs of OpenAI and Anthropic repeat a 429 otherwise
		}
		if format == ai.Bedrock {
			w.Header()[bedrockError] = []string{throttling}
		}
		m.fields.DenyAs(modelDenials[format], m.WriteProblem, w, r, d, client...)
		return
	}
	m.fields.Header(w.Header(), d, client...)
	answer := &denialWriter{ResponseWriter: w, status: m.fields.Status(d)}
	m.denied(answer, r, *d)
	answer.begin()
}

// A denialWriter sends the default status of a denial if [Config.Denied] sends none. Otherwise, clients get 200.
type denialWriter struct {
	http.ResponseWriter
	status int
	begun  bool // the final status has been sent
}

func (w *denialWriter) WriteHeader(status int) {
	w.begun = w.begun || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

func (w *denialWriter) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

func (w *denialWriter) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *denialWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *denialWriter) begin() {
	if !w.begun {
		w.WriteHeader(w.status)
	}
}
