// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/requestpath"
)

// sameMachine serves /v1/ and the dashboard on a connection from this machine only to who
// asks for them by an address or as localhost. A page in a browser here can have the name
// that it came from resolved to 127.0.0.1 afterwards: to the browser, the admin API is
// then of the page's own origin, with all that it says and does. The name is what
// gives it away.
func sameMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, boardPath)) && onLoopback(r) && !isLocalName(r.Host) {
			p := httpapi.Problem{Title: http.StatusText(http.StatusMisdirectedRequest), Status: http.StatusMisdirectedRequest,
				Detail: "on this machine, the administrators' API is asked for as localhost or by its address; a proxy in front of it must not pass on another Host"}
			ratelimitfields.WriteProblem(w, r, p.Status, &p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onLoopback reports whether r's connection is to an address that only this machine has.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// asksItself reports whether r is from a program on this machine that asks for
// itself, as far as can be seen: not a proxy here, that asks for somebody who may be anywhere and
// seldom hides it, nor a page that is made to be of this origin.
func asksItself(r *http.Request) bool {
	for _, name := range [...]string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	return isLocalName(r.Host)
}

// isLocalName reports whether a Host header names what nobody can have resolved
// elsewhere: an address, localhost, or nothing.
func isLocalName(sent string) bool {
	host, ok := requestpath.Host(sent)
	if !ok {
		return sent == ""
	}
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
