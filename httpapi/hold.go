// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"time"
)

// holdGrace is how much longer than a held answer its connection is kept open.
const holdGrace = 10 * time.Second

// hold prepares to keep a gateway waiting, which cannot be told to wait: a server's
// timeouts are for slow clients. What is no server's has none.
func hold(w http.ResponseWriter, wait time.Duration) {
	until, control := time.Now().Add(wait+holdGrace), http.NewResponseController(w)
	_ = control.SetReadDeadline(until)
	_ = control.SetWriteDeadline(until)
}
