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

// Place returns the attribute path of the request, and whether servers read it
// differently. It is read once.
func (f *Facts) Place() (path string, disputed bool) {
	if !f.hasPlace {
		f.place, f.hasPlace = readPlace(f.r.URL), true
	}
	p := &f.place
	switch {
	case f.r.URL.Opaque != "": // which others may read as a whole URL, with a path
		return p.Path, true
	case p.Path == "*" && f.r.Method != http.MethodOptions: // which it is for: RFC 9112, 3.2.4
		return p.Path, true
	case f.r.Method == http.MethodConnect && f.r.URL.Path != "" && p.Path != f.r.URL.Path:
		return p.Path, true // http.ServeMux does not clean those
	}
	return p.Path, p.Disputed
}

// readPlace prefers the path as it was sent, unless a program has changed the decoded one
// since.
func readPlace(u *url.URL) requestpath.Place {
	if u.RawPath != "" {
		if decoded, err := url.PathUnescape(u.RawPath); err == nil && decoded == u.Path {
			return requestpath.Read(u.Path, u.RawPath)
		}
	}
	return requestpath.Read(u.Path, "")
}

// Request returns the request that the facts describe: a proxy sends this one on.
func (f *Facts) Request() *http.Request { return f.r }

// Trusted reports whether a trusted proxy opened the connection. The connection's
// address is read once.
func (f *Facts) Trusted() bool { return f.connection().trusted }

// Address returns the client's address in text form. It is determined once.
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

// Resolve removes empty segments and dot segments from the path of the request, which it
// copies first. A server could resolve them in another way than the rules. Call Resolve
// before the first Lookup.
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

// RemoveField removes the header field with this canonical name from the request, which it
// copies first. Call RemoveField before the first Lookup.
func (f *Facts) RemoveField(name string) {
	r := f.copy()
	if !f.ownHeader {
		r.Header, f.ownHeader = r.Header.Clone(), true
	}
	delete(r.Header, name)
}

// copy makes the request a shallow copy, once, and returns it.
func (f *Facts) copy() *http.Request {
	if !f.own {
		f.r, f.own = f.r.WithContext(f.r.Context()), true
	}
	return f.r
}
