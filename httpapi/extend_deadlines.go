// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"time"
)

// deadlineGrace is how long a connection stays open after the wait of a delayed response.
const deadlineGrace = 10 * time.Second

// extendDeadlines extends the connection's deadlines, which are meant for slow clients.
func extendDeadlines(w http.ResponseWriter, wait time.Duration) {
	until, control := time.Now().Add(wait+deadlineGrace), http.NewResponseController(w)
	_ = control.SetReadDeadline(until)
	_ = control.SetWriteDeadline(until)
}
