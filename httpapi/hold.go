// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/metehq/mete"
)

// holdGrace is how much longer than a held answer its connection is kept open.
const holdGrace = 10 * time.Second

// hold returns when an admitted request may start. A gateway cannot be told to
// wait; it can be kept waiting. Where it gives up before, what the request spent
// is given back, and hold reports false: nobody reads the answer.
func (g *gateway) hold(w http.ResponseWriter, r *http.Request, req mete.Request, wait time.Duration) bool {
	if wait <= 0 {
		return true
	}
	// A server's timeouts are for slow clients. What is no server's has none.
	until, control := time.Now().Add(wait+holdGrace), http.NewResponseController(w)
	_ = control.SetReadDeadline(until)
	_ = control.SetWriteDeadline(until)

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		// If the store fails as well, the tokens come back with time.
		_ = g.lim.Refund(context.WithoutCancel(r.Context()), req)
		return false
	}
}
