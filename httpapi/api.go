// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/sse"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

const (
	// MaxBodyBytes bounds the body of a request. What is longer is answered
	// with 413 and not read.
	MaxBodyBytes = 64 << 10

	// MaxBatch bounds the requests in a batch. A longer one is answered with 400,
	// and none of it is served.
	MaxBatch = 100

	// DefaultMaxWait is the longest max_wait of a request where the configuration does
	// not set another. A request with a longer one is answered with 400. The cost of a
	// reservation is bounded by it: no more than what refills in that time.
	DefaultMaxWait = time.Hour
)

// Config are an [API]'s optional settings.
type Config struct {
	// Admin serves /v1/refund, /v1/reset, /v1/explain, /v1/bucket, /v1/bucket/reset,
	// /v1/bucket/take and /v1/rules/reset, too, which answer 404 otherwise. Whoever can reach them can undo every limit, and read the policy:
	// serve them where only administrators can ask.
	Admin bool

	// Role, if set, says what who asks may do: see [Role]. It must be safe for
	// concurrent use. A request with too low a one is answered with 401 where it has
	// none, with 403 otherwise, before its body is read. If nil, everybody may do
	// everything that is served.
	Role func(*http.Request) Role

	// MaxWait is the longest max_wait of a request. If zero, [DefaultMaxWait]. One take
	// can lock its buckets for that long.
	MaxWait time.Duration

	// Ready, if set, returns why /readyz answers 503, for example while the server stops.
	// Everybody can read the error. If nil, /readyz asks the store, if it is a
	// [store.Pinger]. ctx ends after a second.
	Ready func(ctx context.Context) error

	// AlsoRead are attributes that the caller's hooks read. They are not reported as
	// [Decision.UnknownAttributes], whatever the policy reads.
	AlsoRead []policy.Attribute

	// Reload, if set, serves /v1/reload: it reads the policy again, and returns once
	// it is in force, or why the old one stays. It needs Admin.
	Reload func(context.Context) error

	// Bundle, if set, returns the bundle that /readyz shows, nil for none.
	Bundle func() *api.Bundle

	// Overrides, where it is set, serves /v1/overrides, too, which answers 404
	// otherwise. It needs Admin.
	Overrides *overrides.Manager

	// Top, where it has a tracker, serves /v1/top, too, which answers 404 otherwise. It
	// needs Admin.
	Top Top

	// Audit, if set, records the requests that change something, and serves /v1/activity,
	// which answers 404 otherwise. It needs Admin.
	Audit *audit.Log

	// Live has the sources of /v1/traffic, /v1/watch and the other endpoints that show the
	// limiter at work. They need Admin.
	Live Live

	// Gateway configures /v1/decision, which answers 404 where it is the zero
	// value.
	Gateway Gateway
}

// An API serves the endpoints of this package's documentation. It is a
// [http.Handler], safe for concurrent use, and starts no goroutine of its own. [API.Close]
// ends the streams that are open. It goes by the whole path, so that parts of it can be served elsewhere, too:
//
//	admin.Handle("/livez", api)
//	admin.Handle("/readyz", api)
type API struct {
	lim       *mete.Limiter
	endpoints map[string]endpoint
	browsers  http.CrossOriginProtection
	overrides *overrides.Manager       // nil: not served
	denial    *ratelimitfields.Writer  // Retry-After of a single denial
	role      func(*http.Request) Role // nil: Configure
	audit     *audit.Log
	top       Top
	longest   time.Duration // of max_wait
	read      atomic.Pointer[readers]
	alsoRead  []policy.Attribute
	ready     func(context.Context) error
	live      Live
	lint      lintCache
	streams   *sse.Streams
	bundle    func() *api.Bundle
	plays     chan struct{} // a slot for each play
	files     chan struct{} // a slot for each file of violations
}

// An endpoint is what one path serves. An empty method accepts every one. Who asks
// must have the role.
type endpoint struct {
	method string
	role   Role
	serve  func(w http.ResponseWriter, r *http.Request) *api.Problem

	// change, in place of serve, tells the audit which bucket it changes.
	change func(w http.ResponseWriter, r *http.Request, action *audit.Action) *api.Problem
}

// New returns the API of lim.
func New(lim *mete.Limiter, config Config) (*API, error) {
	if lim == nil {
		return nil, errors.New("httpapi: new: limiter is required")
	}
	if (config.Overrides != nil || config.Reload != nil || config.Top.Tracker != nil || config.Audit != nil) && !config.Admin {
		return nil, errors.New("httpapi: new: overrides, reload, top and audit are for administrators: Admin must be set with them")
	}
	if config.MaxWait < 0 {
		return nil, fmt.Errorf("httpapi: new: longest max_wait %v: must not be below 0", config.MaxWait)
	}
	if config.MaxWait == 0 {
		config.MaxWait = DefaultMaxWait
	}
	gateway, err := newGateway(lim, config.Gateway)
	if err != nil {
		return nil, fmt.Errorf("httpapi: new: %w", err)
	}
	// The caller is a program with the exact wait at hand, not one of a crowd.
	denial, err := ratelimitfields.New(ratelimitfields.Config{Dialects: []string{"none"}, DisableJitter: true, IgnoreRules: true})
	if err != nil {
		return nil, fmt.Errorf("httpapi: new: %w", err)
	}
	a := &API{lim: lim, denial: denial, overrides: config.Overrides, role: config.Role, audit: config.Audit, top: config.Top, longest: config.MaxWait, alsoRead: config.AlsoRead, live: config.Live, bundle: config.Bundle}
	a.top.complete()
	if a.ready = config.Ready; a.ready == nil {
		a.ready = a.pingStore
	}
	a.endpoints = map[string]endpoint{
		"/v1/take": {method: http.MethodPost, role: Operate, serve: a.serveQuestions(a.take, "status")},
		"/v1/peek": {method: http.MethodPost, role: Read, serve: a.serveQuestions(a.peek, "status")},
		"/livez":   {method: http.MethodGet, role: NoRole, serve: a.livez},
		"/readyz":  {method: http.MethodGet, role: NoRole, serve: a.readyz},

		"/openapi.json": {method: http.MethodGet, role: NoRole, serve: a.describe},
	}
	if config.Admin {
		a.endpoints["/v1/refund"] = endpoint{method: http.MethodPost, role: Operate, serve: a.serveQuestions(a.refund)}
		a.endpoints["/v1/reset"] = endpoint{method: http.MethodPost, role: Operate, serve: a.serveQuestions(a.reset)}
		a.endpoints["/v1/explain"] = endpoint{method: http.MethodPost, role: Read, serve: a.explain}
		a.endpoints[bucketPath] = endpoint{method: http.MethodGet, role: Read, serve: a.serveBucket}
		a.endpoints[bucketPath+"/reset"] = endpoint{method: http.MethodPost, role: Operate, change: a.resetBucket}
		a.endpoints[bucketPath+"/take"] = endpoint{method: http.MethodPost, role: Operate, change: a.takeBucket}
		a.endpoints[ruleResetPath] = endpoint{method: http.MethodPost, role: Configure, change: a.resetRule}
		maps.Copy(a.endpoints, a.liveEndpoints())
	}
	if a.audit != nil {
		a.endpoints[activityPath] = endpoint{method: http.MethodGet, role: Read, serve: a.serveActivity}
	}
	if a.overrides != nil {
		a.endpoints[overridesPath] = endpoint{method: "", role: Read, serve: a.serveOverrides}
	}
	if a.top.Tracker != nil {
		a.endpoints[topPath] = endpoint{method: http.MethodGet, role: Read, serve: a.serveTop}
	}
	if config.Reload != nil {
		a.endpoints["/v1/reload"] = endpoint{method: http.MethodPost, role: Configure, serve: a.reload(config.Reload)}
	}
	if gateway != nil {
		a.endpoints["/v1/decision"] = endpoint{method: "", role: NoRole, serve: gateway.serve}
	}
	return a, nil
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var action *audit.Action
	status := 0 // stays 0 if the handler panics
	if what := change(r); a.audit != nil && what != "" {
		action = a.audit.Begin(r, what, a.roleOf(r).String())
		defer func() { action.End(status) }()
	}
	p := a.route(w, r, action)
	if status = http.StatusOK; p != nil {
		status = p.Status
		ratelimitfields.Write(w, r, p)
	}
}

// change returns the audit's name for a request that changes something other than by
// taking tokens, "" for others.
func change(r *http.Request) string {
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	switch name, _, _ := strings.Cut(path, "/"); {
	case r.Method == http.MethodPost && (path == "bucket/reset" || path == "bucket/take" || path == "rules/reset"):
		return path
	case r.Method == http.MethodPost && (name == "refund" || name == "reset" || name == "reload"):
		return name
	case name == "overrides" && (r.Method == http.MethodPut || r.Method == http.MethodDelete):
		return name + " " + r.Method
	}
	return ""
}

func (a *API) route(w http.ResponseWriter, r *http.Request, action *audit.Action) *api.Problem {
	e, ok := a.endpoints[r.URL.Path]
	if a.overrides != nil && strings.HasPrefix(r.URL.Path, overridesPath+"/") {
		e, ok = endpoint{method: http.MethodDelete, role: Operate, serve: a.removeOverride}, true
	}
	switch {
	case !ok:
		return api.NewProblem(http.StatusNotFound, absence(r.URL.Path))
	case e.method == "" || e.method == r.Method || e.method == http.MethodGet && r.Method == http.MethodHead:
		if p := a.permit(w, r, e.role); p != nil {
			return p
		}
		if e.change != nil {
			return e.change(w, r, action)
		}
		return e.serve(w, r)
	}
	allow := e.method
	if allow == http.MethodGet {
		allow += ", " + http.MethodHead
	}
	w.Header()["Allow"] = []string{allow}
	return api.NewProblem(http.StatusMethodNotAllowed, r.URL.Path+" takes "+allow)
}

// absence says why there is nothing at path.
func absence(path string) string {
	switch path {
	case "/v1/decision":
		return "no gateway profile is configured; choose nginx, nginx-lua, haproxy, caddy or traefik"
	case "/v1/refund", "/v1/reset", bucketPath + "/reset", bucketPath + "/take", ruleResetPath:
		return "what changes buckets by hand is not served here; ask at the address that is for administrators"
	case "/v1/explain":
		return "what policies say, and why, is not for everybody; ask at the address that is for administrators"
	case "/v1/reload":
		return "the policy is not reloaded here; ask at the address that is for administrators"
	case bucketPath:
		return "buckets are not shown here; ask at the address that is for administrators"
	case activityPath:
		return "what administrators do is not shown here; ask at the address that is for them, of a server that keeps it"
	case topPath:
		return "top keys are not served here; ask at the address that is for administrators, of a server that counts them"
	case trafficPath, streamPath:
		return "traffic is not shown here; ask at the address that is for administrators, of a server that monitors it"
	case overridesPath:
		return "overrides are not served here; ask at the address that is for administrators"
	}
	return "there is no such endpoint; /openapi.json says which there are"
}
