// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"time"
)

// leftover gives clients a while to send the rest of a body that nobody wants,
// once they have been answered. net/http reads up to 256 KiB of it, so that the
// connection can be used again, and where bodies are streams it would wait for it
// for ever: whoever is denied could keep a connection by a byte now and then.
func leftover(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		if r.Body != http.NoBody {
			// An error is of a connection that has been taken over, and has ended.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience))
		}
	})
}
