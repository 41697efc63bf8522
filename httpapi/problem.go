// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"net/http"
)

// problem returns the problem of that status, titled by it.
func problem(status int, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Detail: detail}
}

// Header values that are assigned as they are: net/http does not change them.
var (
	typeJSON = []string{"application/json"}
	noStore  = []string{"no-store"}
)

// append appends p as JSON.
func (p *Problem) append(b []byte) []byte {
	text, _ := json.Marshal(p) // strings and an integer always marshal
	return append(b, text...)
}
