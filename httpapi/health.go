// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/store"
)

// readyTimeout bounds how long /readyz waits for the store.
const readyTimeout = time.Second

// Drain makes /readyz answer 503 from now on, so that no new traffic is sent
// here. Everything else goes on being served.
func (a *API) Drain() { a.draining.Store(true) }

// livez says that the process serves. It asks nothing of the store: a restart
// would not mend that.
func (a *API) livez(w http.ResponseWriter, _ *http.Request) *api.Problem {
	return health(w, http.StatusOK, `{"status":"ok"}`)
}

// readyz says whether traffic should be sent here. The store's own words are
// left out, because everybody may ask.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) *api.Problem {
	if a.draining.Load() {
		return health(w, http.StatusServiceUnavailable, `{"status":"unavailable","reason":"the server is stopping"}`)
	}
	if pinger, ok := a.lim.Store().(store.Pinger); ok {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := pinger.Ping(ctx); err != nil {
			return health(w, http.StatusServiceUnavailable, `{"status":"unavailable","reason":"the store does not answer"}`)
		}
	}
	if a.bundle != nil {
		if b := a.bundle(); b != nil {
			text, err := json.Marshal(b)
			if err != nil {
				return api.NewProblem(http.StatusInternalServerError, "the state of the bundle cannot be shown")
			}
			return health(w, http.StatusOK, `{"status":"ok","bundle":`+string(text)+`}`)
		}
	}
	return health(w, http.StatusOK, `{"status":"ok"}`)
}

func health(w http.ResponseWriter, status int, body string) *api.Problem {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	w.Write([]byte(body + "\n"))
	return nil
}
