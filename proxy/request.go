// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/metehq/mete/internal/requestpath"
)

// resolved returns r with nothing in its path that the upstream could resolve in
// another way than the rules do. It is r where there is nothing.
func resolved(r *http.Request) *http.Request {
	path := requestpath.Resolved(r.URL.Path)
	if path == r.URL.Path {
		return r
	}
	clean := r.WithContext(r.Context()) // a shallow copy
	clean.URL = new(url.URL)
	*clean.URL = *r.URL
	clean.URL.Path, clean.URL.RawPath = path, ""
	return clean
}

// isPlain reports whether r's target is a path or a URL with one. Of others
// ("http:http://host/path", "*") net/http reads no path, and would yet send them on
// for the upstream to read.
func isPlain(r *http.Request) bool { return r.URL.Opaque == "" && r.URL.Path != "*" }

// rewrite makes the request to the upstream of the client's. The headers that
// say whom it is from are already gone from it.
func (p *Proxy) rewrite(pr *httputil.ProxyRequest) {
	pr.SetURL(&p.upstream) // and its host
	if !p.config.RewriteHost {
		pr.Out.Host = pr.In.Host
	}
	trusted := p.limit.Trusts(pr.In)
	if prior := pr.In.Header["X-Forwarded-For"]; trusted && len(prior) > 0 {
		pr.Out.Header["X-Forwarded-For"] = prior
	} else {
		delete(pr.Out.Header, "X-Forwarded-For")
	}
	pr.SetXForwarded()
	if !trusted {
		return
	}
	for _, name := range []string{"X-Forwarded-Proto", "X-Forwarded-Host"} {
		if prior := pr.In.Header[name]; len(prior) > 0 {
			pr.Out.Header[name] = prior
		}
	}
	if prior := pr.In.Header["Forwarded"]; len(prior) > 0 {
		pr.Out.Header["Forwarded"] = []string{strings.Join(prior, ", ") + ", for=" + forwardedNode(pr.In.RemoteAddr)}
	}
}

// forwardedNode is the address of a connection in the form of RFC 7239 §6.
func forwardedNode(remoteAddr string) string {
	host, _, err := net.SplitHostPort(remoteAddr)
	switch {
	case err != nil:
		return "unknown"
	case strings.Contains(host, ":"):
		return `"[` + host + `]"`
	}
	return host
}
