// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"net/http"

	"github.com/metehq/mete/internal/ratelimitfields"
)

// RemoveFields deletes the rate limit fields of all dialects from an upstream's response, so that only the fields
// of the [Middleware] remain. It keeps Retry-After. It never fails, and fits ModifyResponse of
// [net/http/httputil.ReverseProxy].
func RemoveFields(res *http.Response) error {
	ratelimitfields.Remove(res.Header)
	return nil
}
