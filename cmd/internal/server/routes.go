// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"net/http"

	"github.com/metehq/mete/httpapi"
)

// handlers returns what the two addresses serve. The admin address serves the
// whole API. The main one is the gateway, if there is an upstream; else it
// serves the API, but for what changes buckets by hand.
func (s *Server) handlers() (main, admin http.Handler, err error) {
	s.api, err = httpapi.New(s.limiter, httpapi.Config{Gateway: s.decisions()})
	if err != nil {
		return nil, nil, err
	}
	main = withoutAdmin(s.api)
	if s.config.Upstream != "" {
		if main, err = s.gateway(); err != nil {
			return nil, nil, err
		}
	}
	return s.farewell(main), s.farewell(s.api), nil
}

// withoutAdmin serves the API without the verbs of an administrator.
func withoutAdmin(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/refund", "/v1/reset":
			refuse(w, http.StatusNotFound, "this is on the admin address alone: see admin_listen")
		default:
			api.ServeHTTP(w, r)
		}
	})
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

// refuse answers with a problem (RFC 9457).
func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(httpapi.Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}
