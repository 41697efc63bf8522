// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"mime"
	"net/http"
)

// checkSender refuses what a program that means this API does not send. Without
// it, any page in a browser that can reach the server could spend tokens.
func (a *API) checkSender(r *http.Request) *Problem {
	if err := a.browsers.Check(r); err != nil {
		return problem(http.StatusForbidden, "pages of other origins cannot use this API; call it from a server")
	}
	sent := r.Header.Get("Content-Type")
	if sent == "" || sent == "application/json" {
		return nil
	}
	if media, _, err := mime.ParseMediaType(sent); err != nil || media != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "the body must be JSON; send it with Content-Type: application/json")
	}
	return nil
}
