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
	// API is the URL of the directory that contains v1/ of package httpapi, relative to the pages. It must
	// end with a slash. The default is "../".
	API string
}

// A Handler serves the pages at the root path. To serve them below a prefix, use [http.StripPrefix].
type Handler struct {
	files map[string]*asset // by path
}

// apiMark is the element of index.html with the URL of the API.
const apiMark = `<meta name="mete-api" content="../">`

// New returns a Handler, or an error if c.API does not end with a slash.
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
	index, err := newAsset(contentTypes[".html"], bytes.Replace(all[indexName].plain, []byte(apiMark), []byte(mark), 1))
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
	for name, value := range securityHeaders {
		header[name] = value
	}
	h.serveFile(w, r, strings.TrimPrefix(r.URL.Path, "/"))
}
