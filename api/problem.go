// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"net/http"
)

// A Problem is an error response in the format application/problem+json (RFC 9457). Denials of a gateway or
// middleware are Problems too. A denial of /v1/take is a [Decision].
type Problem struct {
	Type   string `json:"type,omitempty"` // a URI; "about:blank" if empty
	Title  string `json:"title"`
	Status int    `json:"status"` // the HTTP status

	// Detail states the error and the remedy.
	Detail string `json:"detail,omitempty"`

	// Pointer is the location of the error in the request body, as a JSON Pointer (RFC 6901): "/requests/3/cost".
	// Empty if the error concerns the whole body or something else.
	Pointer string `json:"pointer,omitempty"`

	// All errors in an override or in an input of the playground.
	Mistakes []ErrorDetail `json:"mistakes,omitempty"`

	// ViolatedPolicies lists the names of the limits that denied the request, as in the RateLimit-Policy field.
	ViolatedPolicies []string `json:"violated-policies,omitempty"`

	// RetryAfter is the exact wait after a denial, without the jitter of Retry-After: [bucket.Never] if no wait
	// helps. JSON omits 0, which means that there was no decision.
	RetryAfter Seconds `json:"retry_after,omitempty"`

	// Degraded reports a denial by this process's local share, because the store was unavailable.
	Degraded bool `json:"degraded,omitempty"`
}

// NewProblem returns a problem with the title of its HTTP status.
func NewProblem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Error formats p on one line.
func (p *Problem) Error() string {
	text := p.Title
	if p.Pointer != "" {
		text += ": " + p.Pointer
	}
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	return text
}

// Append appends p as JSON.
func (p *Problem) Append(b []byte) []byte {
	text, _ := json.Marshal(p) // strings and numbers always marshal
	return append(b, text...)
}

// ErrorDetail describes one error in a document.
type ErrorDetail struct {
	Pointer string `json:"pointer"` // a JSON Pointer, such as "/match"; empty for the whole document
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"` // how to correct it
}

// String formats m on one line.
func (m ErrorDetail) String() string {
	text := m.Detail
	if m.Pointer != "" {
		text = m.Pointer + ": " + text
	}
	if m.Hint != "" {
		text += "; " + m.Hint
	}
	return text
}
