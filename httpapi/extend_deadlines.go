// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"time"
)

// deadlineGrace is how much longer than a delayed response its connection stays open.
const deadlineGrace = 10 * time.Second

// extendDeadlines extends the connection's deadlines, which are meant for slow clients.
func extendDeadlines(w http.ResponseWriter, wait time.Duration) {
	until, control := time.Now().Add(wait+deadlineGrace), http.NewResponseController(w)
	_ = control.SetReadDeadline(until)
	_ = control.SetWriteDeadline(until)
}
