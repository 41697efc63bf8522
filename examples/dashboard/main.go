// SPDX-License-Identifier: Apache-2.0

// This program is a web server with a rate limit and an embedded dashboard, the same as in mete serve. Only clients on
// this machine may open the dashboard, which can also reset buckets and block keys. Try it:
//
//	go run ./examples/dashboard
//	for i in $(seq 20); do curl -so /dev/null http://127.0.0.1:8000/; done
//
// Meanwhile open http://127.0.0.1:8000/limits/dashboard/.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/topkeys"
)

const rules = `{"name": "visitors", "limit_keys": ["ip:address"], "rps": 1, "burst": 5}`

// limits holds a limiter and its dashboard.
type limits struct {
	limiter *mete.Limiter
	monitor *monitor.Monitor
	pages   *dashboard.Handler
	api     *httpapi.API
}

func newLimits() (*limits, error) {
	matcher, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		return nil, err
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		return nil, err
	}
	now := func() bucket.Instant { return bucket.At(time.Now()) }
	counts, watches := monitor.NewCounts("memory"), new(monitor.Watches)
	top, err := topkeys.New(topkeys.Config{}, now())
	if err != nil {
		return nil, err
	}
	l := new(limits)
	l.limiter, err = mete.New(store, matcher, mete.Config{
		OnDecision: func(ctx context.Context, d *mete.Decision) {
			counts.OnDecision(ctx, d)
			watches.OnDecision(ctx, d)
		},
		OnDenial:    func(_ context.Context, d *mete.Denial) { top.OnDenial(now(), d) },
		OnNearLimit: func(_ context.Context, d *mete.Denial) { top.OnNearLimit(now(), d) },
	})
	if err != nil {
		return nil, err
	}
	exceptions, err := overrides.New(matcher, overrides.Config{Apply: l.limiter.SetPolicy})
	if err != nil {
		return nil, err
	}
	if l.monitor, err = monitor.New(counts, l.limiter.Policy); err != nil {
		return nil, err
	}
	// Without roles every caller is an admin, so the handler admits only this machine.
	l.api, err = httpapi.New(l.limiter, httpapi.Config{
		Admin: true, Overrides: exceptions, Top: httpapi.Top{Tracker: top, Now: now},
		Live: httpapi.Live{Monitor: l.monitor, Watches: watches, Name: func(*http.Request) string { return "this machine" }},
	})
	if err != nil {
		return nil, err
	}
	l.pages, err = dashboard.New(dashboard.Config{})
	return l, err
}

// close stops the monitor and the streams of open pages.
func (l *limits) close() {
	l.api.Close()
	l.monitor.Close()
}

// handler returns the site with its limit, and the dashboard without a limit.
func (l *limits) handler() (http.Handler, error) {
	limited, err := httplimit.New(l.limiter, httplimit.Config{})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/limits/dashboard/", allowLocal(http.StripPrefix("/limits/dashboard", l.pages)))
	mux.Handle("/limits/v1/", allowLocal(http.StripPrefix("/limits", l.api)))
	mux.Handle("/", limited.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })))
	return mux, nil
}

// allowLocal admits requests from this machine to an IP address or localhost. It checks the Host as well, because a
// page on another site could resolve its own name to 127.0.0.1 (DNS rebinding).
func allowLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _, err := net.SplitHostPort(r.RemoteAddr)
		host, _, errHost := net.SplitHostPort(r.Host)
		here := host == "localhost" || net.ParseIP(host) != nil
		if err != nil || errHost != nil || !here || !net.ParseIP(from).IsLoopback() {
			http.Error(w, "this page is only available on the local machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func main() {
	l, err := newLimits()
	if err != nil {
		log.Fatal(err)
	}
	defer l.close()
	handler, err := l.handler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8000", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Print("listening on http://127.0.0.1:8000/, with a dashboard at http://127.0.0.1:8000/limits/dashboard/")
	log.Fatal(server.ListenAndServe())
}
