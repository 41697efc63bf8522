// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"net/http"
	"net/url"

	"github.com/metehq/mete/internal/requestpath"
)

func method(r *http.Request) string {
	if r.Method == "" {
		return http.MethodGet
	}
	return requestpath.Method(r.Method)
}

// Path returns the attribute path of a request target, disputed or not: see package requestpath.
func Path(target string) string {
	path, _ := requestpath.Parse(target)
	return path
}

// Host returns the attribute host of a Host header and whether it is valid: see package requestpath.
func Host(sent string) (string, bool) { return requestpath.Host(sent) }

// Place returns the attribute path of the request, and whether servers interpret it differently.
func (f *Facts) Place() (path string, disputed bool) {
	if !f.hasPlace {
		f.place, f.hasPlace = readPlace(f.r.URL), true
	}
	p := &f.place
	switch {
	case f.r.URL.Opaque != "": // servers may read it as a URL with a path
		return p.Path, true
	case p.Path == "*" && f.r.Method != http.MethodOptions: // "*" is for OPTIONS only (RFC 9112, section 3.2.4)
		return p.Path, true
	case f.r.Method == http.MethodConnect && f.r.URL.Path != "" && p.Path != f.r.URL.Path:
		return p.Path, true // http.ServeMux does not clean the path
	}
	return p.Path, p.Disputed
}

// readPlace prefers the path as sent, unless a program has changed the decoded path since.
func readPlace(u *url.URL) requestpath.Place {
	if u.RawPath != "" {
		if decoded, err := url.PathUnescape(u.RawPath); err == nil && decoded == u.Path {
			return requestpath.Read(u.Path, u.RawPath)
		}
	}
	return requestpath.Read(u.Path, "")
}

// Request returns the request that the facts describe. A proxy must forward this one.
func (f *Facts) Request() *http.Request { return f.r }

// Trusted reports whether a trusted proxy opened the connection.
func (f *Facts) Trusted() bool { return f.connection().trusted }

// Address returns the client's address as text. It is computed once.
func (f *Facts) Address() (string, bool) {
	if !f.hasAddress {
		f.address, f.hasAddress = f.source.config.Trust.client(f.r, f.connection()), true
	}
	return f.address, f.address != ""
}

func (f *Facts) connection() peer {
	if !f.hasPeer {
		f.peer, f.hasPeer = f.source.config.Trust.peer(f.r), true
	}
	return f.peer
}

// Resolve removes empty and dot segments from the path of a copy of the request, because a server could resolve
// them differently than the rules. Call it before the first Lookup.
func (f *Facts) Resolve() {
	f.Place()
	if f.place.Resolved == f.r.URL.Path {
		return
	}
	u := *f.r.URL
	u.Path, u.RawPath = f.place.Resolved, ""
	f.copy().URL = &u
	f.place.Disputed = f.place.ResolvedDisputed
}

// RemoveField removes a header field from a copy of the request. Call it before the first Lookup.
func (f *Facts) RemoveField(name string) {
	r := f.copy()
	if !f.ownHeader {
		r.Header, f.ownHeader = r.Header.Clone(), true
	}
	delete(r.Header, name)
}

func (f *Facts) copy() *http.Request {
	if !f.own {
		f.r, f.own = f.r.WithContext(f.r.Context()), true
	}
	return f.r
}
