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
	// MaxBodyBytes bounds the size of a request body. Larger bodies get a 413 and are not read.
	MaxBodyBytes = 64 << 10

	// MaxBatch bounds the number of requests in a batch. A larger batch gets a 400, and no request of it runs.
	MaxBatch = 100

	// DefaultMaxWait is the default upper bound of max_wait. A request with a longer max_wait gets a 400. The
	// bound also limits the cost of a reservation to the tokens that refill in that time.
	DefaultMaxWait = time.Hour
)

// Config holds the optional settings of an [API].
type Config struct {
	// Admin enables /v1/refund, /v1/reset, /v1/explain, /v1/bucket, /v1/bucket/reset, /v1/bucket/take and
	// /v1/rules/reset, which otherwise return 404. They can undo every limit and reveal the policy: serve them
	// only where administrators have access.
	Admin bool

	// Role, if not nil, returns the role of the caller: see [Role]. It must be safe for concurrent use. The API
	// checks the role before it reads the body. A caller without a role gets a 401, and a caller with too low a
	// role gets a 403. If nil, every caller may use everything that is served.
	Role func(*http.Request) Role

	// MaxWait bounds the max_wait of a request. Zero means [DefaultMaxWait]. One take can lock its buckets that
	// long.
	MaxWait time.Duration

	// Ready, if not nil, returns the reason why /readyz responds with 503, for example during shutdown. Everyone
	// can read the error. If nil, /readyz pings the store if it implements [store.Pinger]. ctx ends after a
	// second.
	Ready func(ctx context.Context) error

	// AlsoRead lists attributes that the caller's hooks read. They never appear in [api.Decision.UnknownAttributes].
	AlsoRead []policy.Attribute

	// Reload, if not nil, enables /v1/reload. It reloads the policy and returns after the new policy is active,
	// or returns the reason why the old one remains. It needs Admin.
	Reload func(context.Context) error

	// Bundle, if not nil, returns the policy bundle that /readyz shows, or nil.
	Bundle func() *api.Bundle

	// Overrides, if not nil, enables /v1/overrides, which otherwise returns 404. It needs Admin.
	Overrides *overrides.Manager

	// Top, if it has a tracker, enables /v1/top, which otherwise returns 404. It needs Admin.
	Top Top

	// Audit, if not nil, records changes and enables /v1/activity, which otherwise returns 404. It needs Admin.
	Audit *audit.Log

	// Live holds the sources of /v1/traffic, /v1/watch and the other live endpoints. They need Admin.
	Live Live

	// Gateway configures /v1/decision, which returns 404 if Gateway is the zero value.
	Gateway Gateway
}

// An API is an [http.Handler] for the endpoints in the package documentation. It is safe for concurrent use and
// starts no goroutine. [API.Close] ends the open streams. An API routes by the whole path, so parts of it can be
// served elsewhere:
//
//	admin.Handle("/livez", api)
//	admin.Handle("/readyz", api)
type API struct {
	lim       *mete.Limiter
	endpoints map[string]endpoint
	browsers  http.CrossOriginProtection
	overrides *overrides.Manager       // nil: not served
	denial    *ratelimitfields.Writer  // Retry-After of a denial
	role      func(*http.Request) Role // nil: every caller has RoleConfigure
	audit     *audit.Log
	top       Top
	maxWait   time.Duration // maximum max_wait
	known     atomic.Pointer[knownAttributes]
	alsoRead  []policy.Attribute
	ready     func(context.Context) error
	live      Live
	lint      lintCache
	streams   *sse.Streams
	bundle    func() *api.Bundle
	plays     chan struct{} // a slot for each play
	files     chan struct{} // a slot for each file of violations

	belowDecision bool // /v1/decision includes the paths below it
}

// decisionPath is the endpoint for gateways.
const decisionPath = "/v1/decision"

// An endpoint is a handler with the method and role that it requires. An empty method accepts every method.
type endpoint struct {
	method string
	role   Role
	serve  func(w http.ResponseWriter, r *http.Request) *api.Problem

	// change replaces serve for endpoints that record a bucket change in the audit log.
	change func(w http.ResponseWriter, r *http.Request, action *audit.Action) *api.Problem
}

// New returns the API of lim.
func New(lim *mete.Limiter, config Config) (*API, error) {
	if lim == nil {
		return nil, errors.New("httpapi: new: limiter is required")
	}
	if (config.Overrides != nil || config.Reload != nil || config.Top.Tracker != nil || config.Audit != nil) && !config.Admin {
		return nil, errors.New("httpapi: new: Overrides, Reload, Top and Audit require Admin")
	}
	if config.MaxWait < 0 {
		return nil, fmt.Errorf("httpapi: new: max wait %v: must not be negative", config.MaxWait)
	}
	if config.MaxWait == 0 {
		config.MaxWait = DefaultMaxWait
	}
	gateway, err := newGateway(lim, config.Gateway)
	if err != nil {
		return nil, fmt.Errorf("httpapi: new: %w", err)
	}
	// Jitter is off: the caller is a program that needs the exact wait.
	denial, err := ratelimitfields.New(ratelimitfields.Config{Dialects: []string{"none"}, DisableJitter: true, IgnoreRules: true})
	if err != nil {
		return nil, fmt.Errorf("httpapi: new: %w", err)
	}
	a := &API{lim: lim, denial: denial, overrides: config.Overrides, role: config.Role, audit: config.Audit, top: config.Top, maxWait: config.MaxWait, alsoRead: config.AlsoRead, live: config.Live, bundle: config.Bundle}
	a.top.setDefaults()
	if a.ready = config.Ready; a.ready == nil {
		a.ready = a.pingStore
	}
	a.endpoints = map[string]endpoint{
		"/v1/take":    {method: http.MethodPost, role: RoleOperate, serve: a.serveRequests(a.take, "status")},
		"/v1/peek":    {method: http.MethodPost, role: RoleRead, serve: a.serveRequests(a.peek, "status")},
		"/v1/hold":    {method: http.MethodPost, role: RoleOperate, serve: a.hold},
		"/v1/settle":  {method: http.MethodPost, role: RoleOperate, serve: a.settle},
		"/v1/release": {method: http.MethodPost, role: RoleOperate, serve: a.release},
		"/v1/renew":   {method: http.MethodPost, role: RoleOperate, serve: a.renew},
		"/livez":      {method: http.MethodGet, role: RoleNone, serve: a.livez},
		"/readyz":     {method: http.MethodGet, role: RoleNone, serve: a.readyz},

		slotsPath + "/renew":   {method: http.MethodPost, role: RoleOperate, serve: a.serveRequests(a.renewSlots)},
		slotsPath + "/release": {method: http.MethodPost, role: RoleOperate, serve: a.serveRequests(a.releaseSlots)},

		"/openapi.json": {method: http.MethodGet, role: RoleNone, serve: a.serveOpenAPI},
	}
	if config.Admin {
		a.endpoints["/v1/refund"] = endpoint{method: http.MethodPost, role: RoleOperate, serve: a.serveRequests(a.refund)}
		a.endpoints["/v1/reset"] = endpoint{method: http.MethodPost, role: RoleOperate, serve: a.serveRequests(a.reset)}
		a.endpoints["/v1/explain"] = endpoint{method: http.MethodPost, role: RoleRead, serve: a.explain}
		a.endpoints[bucketPath] = endpoint{method: http.MethodGet, role: RoleRead, serve: a.serveBucket}
		a.endpoints[bucketPath+"/reset"] = endpoint{method: http.MethodPost, role: RoleOperate, change: a.resetBucket}
		a.endpoints[bucketPath+"/take"] = endpoint{method: http.MethodPost, role: RoleOperate, change: a.takeBucket}
		a.endpoints[ruleResetPath] = endpoint{method: http.MethodPost, role: RoleConfigure, change: a.resetRule}
		maps.Copy(a.endpoints, a.liveEndpoints())
	}
	if a.audit != nil {
		a.endpoints[activityPath] = endpoint{method: http.MethodGet, role: RoleRead, serve: a.serveActivity}
	}
	if a.overrides != nil {
		a.endpoints[overridesPath] = endpoint{method: "", role: RoleRead, serve: a.serveOverrides}
	}
	if a.top.Tracker != nil {
		a.endpoints[topPath] = endpoint{method: http.MethodGet, role: RoleRead, serve: a.serveTop}
	}
	if config.Reload != nil {
		a.endpoints["/v1/reload"] = endpoint{method: http.MethodPost, role: RoleConfigure, serve: a.reload(config.Reload)}
	}
	if gateway != nil {
		a.endpoints[decisionPath] = endpoint{method: "", role: RoleNone, serve: gateway.serve}
		a.belowDecision = gateway.profile.belowPath
	}
	return a, nil
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var action *audit.Action
	status := 0 // stays 0 if the handler panics
	if what := auditName(r); a.audit != nil && what != "" {
		action = a.audit.Begin(r, what, a.roleOf(r).String())
		defer func() { action.End(status) }()
	}
	p := a.route(w, r, action)
	if status = http.StatusOK; p != nil {
		status = p.Status
		ratelimitfields.Write(w, r, p)
	}
}

// auditName returns the audit log's name for a request that changes something other than by taking tokens, or "".
func auditName(r *http.Request) string {
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
	if a.belowDecision && strings.HasPrefix(r.URL.Path, decisionPath+"/") {
		e, ok = a.endpoints[decisionPath], true
	}
	if a.overrides != nil && strings.HasPrefix(r.URL.Path, overridesPath+"/") {
		e, ok = endpoint{method: http.MethodDelete, role: RoleOperate, serve: a.removeOverride}, true
	}
	switch {
	case !ok:
		return api.NewProblem(http.StatusNotFound, notFoundDetail(r.URL.Path))
	case e.method == "" || e.method == r.Method || e.method == http.MethodGet && r.Method == http.MethodHead:
		if p := a.checkRole(w, r, e.role); p != nil {
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

func notFoundDetail(path string) string {
	switch path {
	case decisionPath:
		return "no gateway profile is configured; choose nginx, nginx-lua, haproxy, caddy, traefik or envoy"
	case "/v1/refund", "/v1/reset", bucketPath + "/reset", bucketPath + "/take", ruleResetPath:
		return "this endpoint changes buckets and is served only at the admin address"
	case "/v1/explain":
		return "explanations show the policy and are served only at the admin address"
	case "/v1/reload":
		return "the policy can be reloaded only at the admin address"
	case bucketPath:
		return "buckets are shown only at the admin address"
	case activityPath:
		return "admin activity is shown only at the admin address, if the server has an audit log"
	case topPath:
		return "top keys are shown only at the admin address, if the server counts them"
	case aiPath:
		return "language models are shown only at the admin address, if the server counts their tokens"
	case trafficPath, streamPath:
		return "traffic is shown only at the admin address, if the server monitors it"
	case overridesPath:
		return "overrides are served only at the admin address"
	}
	return "no such endpoint; see /openapi.json for the list"
}
