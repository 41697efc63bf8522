// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/store"
)

// readyTimeout bounds the time of /readyz.
const readyTimeout = time.Second

// livez reports that the process is alive. A restart would not fix the store, so it is not checked.
func (a *API) livez(w http.ResponseWriter, _ *http.Request) *api.Problem {
	return serveHealth(w, http.StatusOK, `{"status":"ok"}`)
}

func (a *API) readyz(w http.ResponseWriter, r *http.Request) *api.Problem {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := a.ready(ctx)
	if err == nil {
		return serveHealth(w, http.StatusOK, `{"status":"ok"`+a.bundleMember()+a.localMember()+`}`)
	}
	reason, _ := json.Marshal(err.Error())
	return serveHealth(w, http.StatusServiceUnavailable, `{"status":"unavailable","reason":`+string(reason)+`}`)
}

func (a *API) bundleMember() string {
	if a.bundle == nil {
		return ""
	}
	b := a.bundle()
	if b == nil {
		return ""
	}
	text, err := json.Marshal(b)
	if err != nil {
		return "" // cannot happen: every bundle marshals
	}
	return `,"bundle":` + string(text)
}

func (a *API) localMember() string {
	if a.overrides == nil {
		return ""
	}
	if n := a.overrides.CountLocal(); n > 0 {
		return `,"local_overrides":` + strconv.Itoa(n)
	}
	return ""
}

// errStoreDown hides the store's error, because /readyz is public.
var errStoreDown = errors.New("the store does not answer")

func (a *API) pingStore(ctx context.Context) error {
	if p, ok := a.lim.Store().(store.Pinger); ok && p.Ping(ctx) != nil {
		return errStoreDown
	}
	return nil
}

func serveHealth(w http.ResponseWriter, status int, body string) *api.Problem {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	w.Write([]byte(body + "\n"))
	return nil
}
