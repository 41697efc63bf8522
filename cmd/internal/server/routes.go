// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"github.com/metehq/mete/httpapi"
)

// handlers returns what the two addresses serve. The admin address serves the
// whole API and the metrics. The main one is the gateway, if there is an upstream; else it
// serves the API, but for what changes buckets by hand.
func (s *Server) handlers() (main, admin http.Handler, err error) {
	if s.api, err = httpapi.New(s.limiter, httpapi.Config{Gateway: s.decisions()}); err != nil {
		return nil, nil, err
	}
	if s.manage, err = httpapi.New(s.limiter, httpapi.Config{Gateway: s.decisions(), Admin: true, Overrides: s.overrides, Role: roleOf, Reload: s.reloadNow, Top: s.top.api(s.store.key)}); err != nil {
		return nil, nil, err
	}
	main = s.api
	if s.inFront() {
		if main, err = s.gateway(); err != nil {
			return nil, nil, err
		}
	}
	manage := s.watch.Wrap(apiDoor, false, s.manage)
	return s.farewell(s.watched(main)), s.farewell(sameMachine(s.access.enter(s.audited(s.withMetrics(manage))))), nil
}

// withHealth serves two paths by the API and everything else by next.
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

// farewell closes connections as their requests are answered once the server
// is ending, so that clients go elsewhere before they are made to.
func (s *Server) farewell(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
