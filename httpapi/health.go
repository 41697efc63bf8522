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

// readyTimeout bounds the wait of /readyz.
const readyTimeout = time.Second

// livez says that the process serves. It asks nothing of the store: a restart
// would not mend that.
func (a *API) livez(w http.ResponseWriter, _ *http.Request) *api.Problem {
	return health(w, http.StatusOK, `{"status":"ok"}`)
}

// readyz reports whether traffic should be sent here.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) *api.Problem {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := a.ready(ctx)
	if err == nil {
		return health(w, http.StatusOK, `{"status":"ok"`+a.bundleMember()+a.localMember()+`}`)
	}
	reason, _ := json.Marshal(err.Error())
	return health(w, http.StatusServiceUnavailable, `{"status":"unavailable","reason":`+string(reason)+`}`)
}

// bundleMember returns the member of an answer that describes the bundle, empty for none.
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
		return "" // a bundle has no value without JSON
	}
	return `,"bundle":` + string(text)
}

// localMember returns the member of an answer that counts local overrides, empty for none.
func (a *API) localMember() string {
	if a.overrides == nil {
		return ""
	}
	if n := a.overrides.Local(); n > 0 {
		return `,"local_overrides":` + strconv.Itoa(n)
	}
	return ""
}

// errStoreDown is a reason of /readyz. It has nothing of the store's error: everybody may ask.
var errStoreDown = errors.New("the store does not answer")

// pingStore asks the store whether it answers.
func (a *API) pingStore(ctx context.Context) error {
	if p, ok := a.lim.Store().(store.Pinger); ok && p.Ping(ctx) != nil {
		return errStoreDown
	}
	return nil
}

func health(w http.ResponseWriter, status int, body string) *api.Problem {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	w.Write([]byte(body + "\n"))
	return nil
}
