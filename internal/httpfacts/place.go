// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"path"
	"strings"
)

// method returns r's method; the empty one stands for GET.
func method(r *http.Request) string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// Path returns the attribute path of a decoded [url.URL.Path]: it resolves
// empty, "." and ".." segments, and keeps a trailing slash. Clean paths are
// returned as they are; the empty one is "/".
func Path(p string) string {
	switch {
	case p == "":
		return "/"
	case p == "*": // of OPTIONS
		return p
	case p[0] != '/':
		p = "/" + p
	}
	if isClean(p) {
		return p
	}
	clean := path.Clean(p)
	if clean != "/" && (strings.HasSuffix(p, "/") || strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")) {
		clean += "/" // what ends in a dot segment is a directory: RFC 3986, 5.2.4
	}
	return clean
}

// isClean reports whether no segment of p, but for the last, is empty and none
// is "." or "..". p starts with a slash.
func isClean(p string) bool {
	for rest, more := p[1:], true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if segment == "." || segment == ".." || segment == "" && more {
			return false
		}
	}
	return true
}

// Host returns the attribute host of a Host header, "example.com" for
// "Example.COM.:80", and whether it names one.
func Host(h string) (string, bool) {
	if strings.HasPrefix(h, "[") {
		h, _, _ = strings.Cut(h[1:], "]")
	} else {
		h, _, _ = strings.Cut(h, ":")
	}
	h = strings.TrimSuffix(h, ".")
	return strings.ToLower(h), h != ""
}
