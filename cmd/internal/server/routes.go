// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"

	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/policy"
)

// handlers returns what the two addresses serve. The admin address serves the
// whole API and the metrics. The main one is the gateway, if there is an upstream; else it
// serves the API, but for what changes buckets by hand.
func (s *Server) handlers() (main, admin http.Handler, err error) {
	if s.api, err = httpapi.New(s.limiter, httpapi.Config{Gateway: s.decisions(), MaxWait: s.config.MaxWait, AlsoRead: s.alsoRead(), Bundle: s.bundleState}); err != nil {
		return nil, nil, err
	}
	record, err := audit.New(audit.Config{
		Caller: s.access.auditor, Logger: s.log, Overrides: s.overrides, NoteTimeout: s.config.Timeouts.APIRequest / 2,
	})
	if err != nil {
		return nil, nil, err
	}
	live, err := s.live()
	if err != nil {
		return nil, nil, err
	}
	if s.manage, err = httpapi.New(s.limiter, httpapi.Config{
		Gateway: s.decisions(), MaxWait: s.config.MaxWait, AlsoRead: s.alsoRead(), Admin: true, Overrides: s.overrides, Role: roleOf, Reload: s.reloadNow, Top: s.top.api(s.store.keyFor("top keys")),
		Audit: record, Live: live, Bundle: s.bundleState,
	}); err != nil {
		return nil, nil, err
	}
	main = sameMachine(s.api)
	if s.inFront() {
		if main, err = s.gateway(); err != nil {
			return nil, nil, err
		}
	}
	pages, err := dashboard.New(dashboard.Config{})
	if err != nil {
		return nil, nil, err
	}
	manage := withBoard(pages, s.withMetrics(s.watch.Wrap(apiDoor, false, s.manage)))
	return s.farewell(s.watched(main)), s.farewell(sameMachine(s.access.enter(manage))), nil
}

// alsoRead returns the attributes that the log and the record of denials read.
func (s *Server) alsoRead() (list []policy.Attribute) {
	var names []string
	if s.denials != nil {
		names = append(names, "ip:address")
	}
	if s.trail != nil {
		names = append(names, "ip:address", "method", "path", s.config.ViolationsUser)
	}
	for _, name := range names {
		if a, err := policy.ParseAttribute(name); err == nil { // config has checked the user's
			list = append(list, a)
		}
	}
	return list
}

// withBoard serves the dashboard, and everything else by next. Who comes with a browser
// is led to it: by a relative URL, as there may be a prefix that only a proxy knows.
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
