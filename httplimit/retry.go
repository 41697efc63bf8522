// SPDX-License-Identifier: Apache-2.0

package httplimit

import "net/http"

// retryRequest returns a copy of r to send after a rejection with status, or false if r must not be retried.
func retryRequest(r *http.Request, status int) (*http.Request, bool) {
	// A 429 means that the request was not processed. A 503 does not.
	if status != http.StatusTooManyRequests && !isIdempotent(r) {
		return nil, false
	}
	again := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return again, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	again.Body = body
	return again, true
}

// isIdempotent reports whether a retry of r is safe (RFC 9110, section 9.2.2).
func isIdempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

// closeBody closes the body of a request that is not sent, as a RoundTripper must.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
