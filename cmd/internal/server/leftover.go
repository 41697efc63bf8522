// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
)

// leftover bounds what net/http still does with a request that has been answered,
// where bodies are streams and the server has no timeouts that would. It reads up to
// 256 KiB of a body that nobody wanted, so that the connection can be used again:
// whoever is denied could keep a connection by a byte now and then. And it sends what
// is still buffered: whoever never reads could keep a connection, or with HTTP/2 any
// number of streams.
func leftover(next http.Handler, t config.Timeouts) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if t.ClientBody > 0 && r.ProtoMajor == 1 {
			_ = control.SetWriteDeadline(time.Time{}) // that of the request before is still the connection's
		}
		next.ServeHTTP(w, r)
		now := time.Now()
		// Errors are of a connection that was taken over, and has ended.
		if r.Body != http.NoBody {
			_ = control.SetReadDeadline(now.Add(t.ReadHeader))
		}
		if t.ClientBody > 0 {
			_ = control.SetWriteDeadline(now.Add(t.ClientBody))
		}
	})
}
