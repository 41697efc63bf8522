// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/cmd/internal/curl"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/overrides"
)

// adminGrace is the extra time for requests to the admin address after the main listener has stopped.
const adminGrace = time.Second

// mainListener returns the listener of the main address. It serves the gateway if there is an upstream. Otherwise
// it serves the API without the endpoints that change buckets.
func (a *assembly) mainListener(s *socket, door httpapi.Config, b *buckets, claims claimReader, adapt adaptation, watch *telemetry.Watch) (*httpListener, error) {
	c := a.config
	api, err := httpapi.New(a.limiter, door)
	if err != nil {
		return nil, err
	}
	limit := &inFlightLimit{most: int64(c.MaxInFlight), exempt: func(*http.Request) bool { return false }}
	if !c.IsGateway() {
		h := a.closeWhenStopping(watch.Wrap(apiEndpoint, false, rejectRebinding(api)))
		l := newHTTPListener("main", s, limit, h, c.Timeouts, c.Timeouts.APIRequest, c.MaxHeaderBytes, a.log)
		l.server.Protocols = mainProtocols(c.TLS.On(), c.H2C)
		return l, nil
	}
	p, err := a.openGateway(a.limiter, b, claims, adapt)
	if err != nil {
		return nil, err
	}
	h := a.closeWhenStopping(watch.Wrap(proxyEndpoint, true, limitBodyDrain(withHealth(api, p), c.Timeouts)))
	l := newHTTPListener("main", s, limit, h, c.Timeouts, 0, c.MaxHeaderBytes, a.log)
	l.server.Protocols = mainProtocols(c.TLS.On(), c.H2C)
	l.drain = a.drainUpgrades(p)
	return l, nil
}

// adminListener returns the listener of the admin address, with the whole API, the metrics and the dashboard.
func (a *assembly) adminListener(s *socket, door httpapi.Config, b *buckets, source source, manager *overrides.Manager, access *access, watch *telemetry.Watch) (*httpListener, error) {
	c := a.config
	record, err := audit.New(audit.Config{
		Caller: access.auditor, Logger: a.log, Overrides: manager, NoteTimeout: c.Timeouts.APIRequest / 2,
	})
	if err != nil {
		return nil, err
	}
	board := newBoard(a.Server, b, source, manager)
	if a.live.Monitor, err = monitor.New(board, a.limiter.Policy); err != nil {
		return nil, err
	}
	a.add(newCloser("monitor", a.live.Monitor.Close))
	a.live.Name, a.live.SignIn, a.live.Try, a.live.ReadCurl = callerName, signInHint(a.tokenFile), a.Commands(c), curl.Read
	door.Admin, door.Overrides, door.Role, door.Reload, door.Top = true, manager, roleOf, a.reloadNow, a.top
	door.Audit, door.Live = record, a.live
	api, err := httpapi.New(a.limiter, door)
	if err != nil {
		return nil, err
	}
	pages, err := dashboard.New(dashboard.Config{})
	if err != nil {
		return nil, err
	}
	h := withBoard(access.serveSignIn(pages), withMetrics(a.metrics, watch.Wrap(apiEndpoint, false, api)))
	limit := &inFlightLimit{most: adminInFlight, exempt: isStream}
	l := newHTTPListener("admin", s, limit, a.closeWhenStopping(rejectRebinding(access.enter(h))), c.Timeouts, c.Timeouts.APIRequest, c.MaxHeaderBytes, a.log)
	l.server.RegisterOnShutdown(api.Close) // ends the event streams, which have no end of their own
	return l, nil
}

func mainProtocols(tls, h2c bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(tls)
	p.SetUnencryptedHTTP2(h2c)
	return p
}

// closeWhenStopping closes each connection after its response while the server stops, so that clients reconnect to
// another server.
func (s *Server) closeWhenStopping(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func withMetrics(metrics, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			metrics.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// apiEndpoint returns the endpoint label of an API request for the metrics.
func apiEndpoint(r *http.Request) string {
	switch path := r.URL.Path; {
	case path == "/v1/take":
		return metrics.Take
	case isDecision(path):
		return metrics.Decision
	}
	return ""
}

// proxyEndpoint returns the endpoint label of all proxied requests.
func proxyEndpoint(r *http.Request) string {
	switch r.URL.Path {
	case "/livez", "/readyz":
		return ""
	}
	return metrics.Proxy
}

// withBoard serves the dashboard and delegates other paths to next. It redirects browsers from the root to the
// dashboard, with a relative URL because a proxy may add a prefix.
func withBoard(board, next http.Handler) http.Handler {
	pages := http.StripPrefix(strings.TrimSuffix(boardPath, "/"), board)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, boardPath):
			pages.ServeHTTP(w, r)
		case r.URL.Path+"/" == boardPath,
			r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html"):
			w.Header().Set("Location", boardPath[1:])
			w.WriteHeader(http.StatusSeeOther)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// withHealth serves the two health endpoints by api and other paths by next.
func withHealth(api, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/livez", "/readyz":
			api.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
