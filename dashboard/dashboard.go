// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"errors"
	"html"
	"maps"
	"net/http"
	"strings"
)

// Config has the optional settings of a [Handler].
type Config struct {
	// API is the URL of the directory with v1/ of package httpapi, relative to the pages. It
	// ends with a slash. Empty is "../".
	API string
}

// A Handler serves the pages. It goes by the path from its own root on: mount it with
// [http.StripPrefix].
type Handler struct {
	files map[string]*asset // by path
}

// apiMark is the place in index.html that tells the scripts where the API is.
const apiMark = `<meta name="mete-api" content="../">`

// New returns the pages.
func New(c Config) (*Handler, error) {
	all, err := assets()
	if err != nil {
		return nil, err
	}
	if c.API == "" || c.API == "../" {
		return &Handler{all}, nil
	}
	if !strings.HasSuffix(c.API, "/") {
		return nil, errors.New("dashboard: new: API must end with a slash")
	}
	mark := strings.Replace(apiMark, "../", html.EscapeString(c.API), 1)
	index, err := newAsset(kinds[".html"], bytes.Replace(all[indexName].plain, []byte(apiMark), []byte(mark), 1))
	if err != nil {
		return nil, err
	}
	all = maps.Clone(all)
	all[indexName] = index
	return &Handler{all}, nil
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range secured {
		header[name] = value
	}
	h.serve(w, r, strings.TrimPrefix(r.URL.Path, "/"))
}
