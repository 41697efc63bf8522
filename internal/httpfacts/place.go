// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"net/url"

	"github.com/metehq/mete/internal/requestpath"
)

// method returns the attribute method of r; the empty one stands for GET.
func method(r *http.Request) string {
	if r.Method == "" {
		return http.MethodGet
	}
	return requestpath.Method(r.Method)
}

// Path returns the attribute path of a request target as it was sent, disputed or
// not: see package requestpath.
func Path(target string) string {
	path, _ := requestpath.Of(target)
	return path
}

// Host returns the attribute host of a Host header, and whether it names one: see
// package requestpath.
func Host(sent string) (string, bool) { return requestpath.Host(sent) }

// Place returns the attribute path of r, and whether it is disputed: for doors that
// route by what rules are asked about.
func Place(r *http.Request) (path string, disputed bool) {
	path, disputed = urlPath(r.URL)
	switch {
	case r.URL.Opaque != "": // which others may read as a whole URL, with a path
		disputed = true
	case path == "*" && r.Method != http.MethodOptions: // which it is for: RFC 9112, 3.2.4
		disputed = true
	case r.Method == http.MethodConnect && r.URL.Path != "" && path != r.URL.Path:
		disputed = true // http.ServeMux does not clean those
	}
	return path, disputed
}

// urlPath prefers the path as it was sent, unless somebody has changed the
// decoded one since.
func urlPath(u *url.URL) (path string, disputed bool) {
	if u.RawPath != "" {
		if decoded, err := url.PathUnescape(u.RawPath); err == nil && decoded == u.Path {
			return requestpath.Of(u.RawPath)
		}
	}
	return requestpath.Decoded(u.Path)
}
