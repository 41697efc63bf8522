// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/requestpath"
)

// misdirectedDetail tells a caller that a name in Host is refused, and the remedy.
const misdirectedDetail = "on a loopback address, ask for the API by localhost or an address in Host; a proxy in front of it must set Host so"

// sameMachine refuses requests to the API and the dashboard with 421 where the connection
// is to a loopback address and Host is a name other than localhost. A page in a browser on
// this machine can have its own name resolve to 127.0.0.1 after it was loaded. The browser
// then takes the API for the page's own origin, and sends no Origin with a GET. The name
// in Host gives the page away.
//
// Gateways ask /v1/decision, and most recipes send the name of the site in Host, and the
// client's Origin with it. So /v1/decision accepts a name unless browserWrote holds.
func sameMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if guarded(r.URL.Path) && onLoopback(r) && !isLocalName(r.Host) && (r.URL.Path != decisionPath || browserWrote(r)) {
			answerProblem(w, r, http.StatusMisdirectedRequest, misdirectedDetail)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// decisionPath is where gateways ask.
const decisionPath = "/v1/decision"

// guarded reports whether a path belongs to the API or the dashboard.
func guarded(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, boardPath)
}

// browserWrote reports whether the port in Host is the one that r's connection is to. A
// browser that connects here by a name writes this port. A gateway on this machine has
// another port: it passes on the Host of its clients, or writes a name without a port.
func browserWrote(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return true
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil { // browsers leave out the default port
		port = "80"
		if r.TLS != nil {
			port = "443"
		}
	}
	return port == strconv.Itoa(local.Port)
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
