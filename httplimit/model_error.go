// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"encoding/json"
	"net/http"

	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// modelError names the errors of a status, as OpenAI, Anthropic, Gemini and Bedrock do.
type modelError struct{ openai, anthropic, gemini, bedrock string }

var modelErrors = map[int]modelError{
	http.StatusBadRequest:            {"invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT", "ValidationException"},
	http.StatusForbidden:             {"invalid_request_error", "permission_error", "PERMISSION_DENIED", "AccessDeniedException"},
	http.StatusNotFound:              {"invalid_request_error", "not_found_error", "NOT_FOUND", "ResourceNotFoundException"},
	http.StatusRequestTimeout:        {"invalid_request_error", "timeout_error", "DEADLINE_EXCEEDED", "ModelTimeoutException"},
	http.StatusRequestEntityTooLarge: {"invalid_request_error", "request_too_large", "INVALID_ARGUMENT", "ValidationException"},
	http.StatusTooManyRequests:       {"rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED", throttling},
	http.StatusServiceUnavailable:    {"server_error", "overloaded_error", "UNAVAILABLE", "ServiceUnavailableException"},
	http.StatusGatewayTimeout:        {"server_error", "timeout_error", "DEADLINE_EXCEEDED", "InternalServerException"},
}

// otherModelError is for all other statuses, such as 502.
var otherModelError = modelError{"server_error", "api_error", "INTERNAL", "InternalServerException"}

const throttling = "ThrottlingException"

// bedrockError is the field that names an error of Bedrock.
const bedrockError = "X-Amzn-Errortype"

// WriteProblem responds to r with a problem, or with the error body that clients of a language model expect. It is for package
// proxy.
func (m *Middleware) WriteProblem(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	format := m.modelFormat(r)
	if format == 0 {
		ratelimitfields.Write(w, r, p)
		return
	}
	kind, known := modelErrors[p.Status]
	if !known {
		kind = otherModelError
	}
	body := map[string]any{"message": p.Detail}
	switch format {
	case ai.Bedrock:
		w.Header()[bedrockError] = []string{kind.bedrock}
	case ai.Anthropic:
		body["type"] = kind.anthropic
		body = map[string]any{"type": "error", "error": body}
	case ai.Gemini:
		body["code"], body["status"] = p.Status, kind.gemini
		body = map[string]any{"error": body}
	default:
		body["type"], body["param"], body["code"] = kind.openai, nil, nil
		body = map[string]any{"error": body}
	}
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = []string{"application/json"}, []string{"no-store"}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(body) // a client that is gone
	}
}

// modelFormat returns the format of a request to a language model, or 0. A policy that counts tokens serves clients of language
// models. A request with another method can be refused because it hides a POST.
func (m *Middleware) modelFormat(r *http.Request) ai.Format {
	if !m.ReadsBodies() {
		return 0
	}
	format, _ := ai.DetectFormat(http.MethodPost, r.URL.Path)
	return format
}
