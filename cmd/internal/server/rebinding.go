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

const misdirectedDetail = "on a loopback address, Host must be localhost or an IP address; a proxy in front of the server must set it"

// rejectRebinding protects the API and the dashboard against DNS rebinding. A website can point its own name at
// 127.0.0.1 after the browser has loaded a page. The browser then treats the API as the page's origin and sends no
// Origin with a GET. rejectRebinding therefore responds with status 421 if the connection is to a loopback address
// and Host is a name other than localhost.
//
// Gateways call /v1/decision, often with the Host and Origin of their client. This path and the paths below it
// therefore accept a name unless hasBrowserPort reports true.
func rejectRebinding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isGuarded(r.URL.Path) && onLoopback(r) && !isLocalName(r.Host) && (!isDecision(r.URL.Path) || hasBrowserPort(r)) {
			answerProblem(w, r, http.StatusMisdirectedRequest, misdirectedDetail)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// decisionPath is the endpoint for gateways.
const decisionPath = "/v1/decision"

// isDecision reports whether a path is the endpoint for gateways or below it, where Envoy appends the client's path.
// The API serves nothing else there.
func isDecision(path string) bool {
	return path == decisionPath || strings.HasPrefix(path, decisionPath+"/")
}

// isGuarded reports whether a path belongs to the API or the dashboard.
func isGuarded(path string) bool {
	return strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, boardPath)
}

// hasBrowserPort reports whether the port in Host is the port of r's connection. A browser that connects to this
// server sends this port. A gateway on this machine forwards the Host of its client, which has another port or
// none.
func hasBrowserPort(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return true
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil { // browsers omit the default port
		port = "80"
		if r.TLS != nil {
			port = "443"
		}
	}
	return port == strconv.Itoa(local.Port)
}

// onLoopback reports whether r's connection is to a loopback address.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

// isDirectLocalClient reports whether r comes directly from a program on this machine. It returns false for a
// proxy that forwards a request, and for a page that may use DNS rebinding.
func isDirectLocalClient(r *http.Request) bool {
	for _, name := range [...]string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	return isLocalName(r.Host)
}

// isLocalName reports whether a Host header needs no DNS: an IP address, localhost or an empty value.
func isLocalName(sent string) bool {
	host, ok := requestpath.Host(sent)
	if !ok {
		return sent == ""
	}
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
