// SPDX-License-Identifier: Apache-2.0

package httplimit

import "net/http"

// repeat returns r to be sent again after it was refused with that status, and
// whether it may be.
func repeat(r *http.Request, status int) (*http.Request, bool) {
	// A 429 says that nothing was done. A 503 does not.
	if status != http.StatusTooManyRequests && !idempotent(r) {
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

// idempotent reports whether doing r twice does no more than doing it once:
// RFC 9110, 9.2.2.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return r.Header.Get("Idempotency-Key") != "" || r.Header.Get("X-Idempotency-Key") != ""
}

// closeBody closes the body of a request that is not sent, which a RoundTripper
// must.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
