// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"net/http"
	"strings"

	"github.com/metehq/mete"
)

// Config is what a [Handler] shows, and to whom.
type Config struct {
	// Limiter is whose policy and buckets are shown. It is required.
	Limiter *mete.Limiter

	// Source has what is counted. It is required.
	Source Source

	// Watches pass on the decisions about a bucket that a page watches: the limiter's hook
	// tells them. If nil, such a page shows the tokens of the bucket, and no decisions.
	Watches *Watches

	// Viewer says who sent a request. It must be safe for concurrent use. It is
	// required: a dashboard for everybody is one whose Viewer says so.
	Viewer func(*http.Request) Viewer

	// Key returns the true key of one that was masked, for viewers who may look at a
	// bucket without seeing whose it is. If nil, such a bucket is not found.
	Key Keys

	// API is where the pages find the API for administrators (package httpapi), by a
	// URL relative to theirs. Empty is "../": there is a v1/ beside them.
	API string

	// SignIn tells in sentences where a token comes from: whoever has none, too. It may
	// be empty.
	SignIn string

	// Try are commands that send the limiter something, for a page on which nothing has
	// happened yet. There may be none.
	Try []string

	// Top and Overrides say whether the API has /v1/top and /v1/overrides.
	Top, Overrides bool

	// Violations, where they are recorded, are shown, too.
	Violations Violations
}

// A Handler serves the dashboard. It goes by the path from its own root on: mount it
// with [http.StripPrefix]. It must be closed.
type Handler struct {
	config   Config
	browsers http.CrossOriginProtection
	hub      *hub
	streams  streams
	plays    chan struct{} // a place for each that is played
	files    chan struct{} // a place for each that is written
}

// New returns a dashboard, and begins to ask the source.
func New(c Config) (*Handler, error) {
	switch {
	case c.Limiter == nil:
		return nil, errors.New("dashboard: new: limiter is required")
	case c.Source == nil:
		return nil, errors.New("dashboard: new: source is required")
	case c.Viewer == nil:
		return nil, errors.New("dashboard: new: viewer is required")
	}
	if c.Watches == nil {
		c.Watches = new(Watches)
	}
	if c.API == "" {
		c.API = "../"
	}
	if err := assets.load(); err != nil {
		return nil, err
	}
	return &Handler{
		config: c, hub: newHub(c.Source, c.Limiter.Policy), streams: newStreams(),
		plays: make(chan struct{}, placesToPlay()), files: make(chan struct{}, maxFiles),
	}, nil
}

// Close ends all streams, so that their connections become free, and asks the source
// no more. Everything else is served as before.
func (h *Handler) Close() {
	h.hub.close()
	h.streams.close()
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range secured {
		header[name] = value
	}
	path := strings.TrimPrefix(r.URL.Path, "/")
	data, isData := strings.CutPrefix(path, "data/")
	if !isData {
		assets.serve(w, r, path)
		return
	}
	if err := h.serveData(w, r, data); err != nil {
		answerError(w, r, err)
	}
}

// serveData serves what is behind data/.
func (h *Handler) serveData(w http.ResponseWriter, r *http.Request, name string) error {
	e, ok := endpoints[name]
	if !ok {
		return refuse(http.StatusNotFound, "the dashboard has no such data")
	}
	if r.Method != e.method && !(e.method == http.MethodGet && r.Method == http.MethodHead) {
		w.Header().Set("Allow", e.method)
		return refuse(http.StatusMethodNotAllowed, "this takes %s", e.method)
	}
	if err := h.browsers.Check(r); err != nil {
		return refuse(http.StatusForbidden, "pages of other origins cannot ask the dashboard")
	}
	v := h.config.Viewer(r)
	if !v.Look {
		w.Header().Set("Www-Authenticate", `Bearer realm="mete"`) // RFC 6750 §3
		detail := "this takes a token of the role read"
		if h.config.SignIn != "" {
			detail += ". " + h.config.SignIn
		}
		return refuse(http.StatusUnauthorized, "%s", detail)
	}
	return e.serve(h, w, r, v)
}
