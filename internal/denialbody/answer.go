// SPDX-License-Identifier: Apache-2.0

package denialbody

import "slices"

// An Answer is the response to requests that a rule denies. It is immutable and safe for concurrent use.
type Answer struct {
	Status int    // 0 is 429
	Format string // one of [Formats], or "" with a Body
	Body   *Template
}

// The bounds of statuses.
const (
	MinStatus = 400
	MaxStatus = 599
)

// CheckStatus returns an error for a status that a denial cannot have. Clients need a further header field with some
// statuses, such as WWW-Authenticate with 401.
func CheckStatus(status int) error {
	switch {
	case status < MinStatus || status > MaxStatus:
		return &Error{Reason: "status must be between 400 and 599", Hint: "clients treat other statuses as success or a redirect"}
	case slices.Contains([]int{401, 405, 407, 416, 426}, status):
		return &Error{Reason: "status requires a header field that a denial does not have", Hint: "use 429, 403 or 503"}
	}
	return nil
}

// FormatProblem is the format of RFC 9457, the default.
const FormatProblem = "problem"

// Formats are the names of the formats.
var Formats = []string{FormatProblem, "openai", "anthropic", "gemini"}

// formats are the bodies of the formats. Gemini clients read the wait in the body: the second body is for denials
// without a wait.
var formats = map[string][2]*Template{
	"openai":    repeatBody(`{"error":{"message":"{{message}}","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`),
	"anthropic": repeatBody(`{"type":"error","error":{"type":"rate_limit_error","message":"{{message}}"}}`),
	"gemini": {
		mustParse(`{"error":{"code":{{status}},"message":"{{message}}","status":"RESOURCE_EXHAUSTED","details":[` +
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{{retry_after}}s"}]}}`),
		mustParse(`{"error":{"code":{{status}},"message":"{{message}}","status":"RESOURCE_EXHAUSTED"}}`),
	},
}

func mustParse(body string) *Template {
	t, err := Parse(body, "application/json")
	if err != nil {
		panic(err) // a test covers every format
	}
	return t
}

func repeatBody(body string) [2]*Template { return [2]*Template{mustParse(body), mustParse(body)} }

// Template returns the body for a denial, or nil for a problem.
func (a *Answer) Template(v *Values) *Template {
	switch {
	case a == nil:
		return nil
	case a.Body != nil:
		return a.Body
	case v.RetryAfter == "":
		return formats[a.Format][1]
	}
	return formats[a.Format][0]
}
