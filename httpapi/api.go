// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/ratelimitfields"
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
	// Admin serves /v1/refund, /v1/reset, /v1/explain, /v1/bucket, /v1/bucket/reset and
	// /v1/bucket/take, too, which answer 404 otherwise. Whoever can reach them can undo every limit, and read the policy:
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

	// AlsoRead are attributes that the caller's hooks read. They are not reported as
	// [Decision.UnknownAttributes], whatever the policy reads.
	AlsoRead []policy.Attribute

	// Reload, if set, serves /v1/reload: it reads the policy again, and returns once
	// it is in force, or why the old one stays. It needs Admin.
	Reload func(context.Context) error

	// Overrides, where it is set, serves /v1/overrides, too, which answers 404
	// otherwise. It needs Admin.
	Overrides *overrides.Manager

	// Top, where it has a tracker, serves /v1/top, too, which answers 404 otherwise. It
	// needs Admin.
	Top Top

	// Acted, if set, is told what somebody asks to do to a single bucket, before that is
	// done: for an audit trail. It must be safe for concurrent use, and be fast.
	Acted func(*http.Request, Act)

	// Done, if set, is told what was done to a single bucket, before that is answered:
	// What, Key, Tokens and Reason of an entry for [overrides.Manager.Note]. It is told
	// neither what changed nothing, nor what is not known. It must be safe for concurrent
	// use, and the answer waits for it.
	Done func(*http.Request, overrides.Entry)

	// Activity, if set, serves /v1/activity, too, which answers 404 otherwise: what
	// administrators did lately, the newest first, with true keys. It needs Admin, and
	// must be safe for concurrent use.
	Activity func() []Activity

	// Gateway configures /v1/decision, which answers 404 where it is the zero
	// value.
	Gateway Gateway
}

// An API serves the endpoints of this package's documentation. It is a
// [http.Handler], safe for concurrent use, and starts no goroutine. It goes by
// the whole path, so that parts of it can be served elsewhere, too:
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
	acted     func(*http.Request, Act)
	done      func(*http.Request, overrides.Entry)
	top       Top
	longest   time.Duration // of max_wait
	read      atomic.Pointer[readers]
	alsoRead  []policy.Attribute
	draining  atomic.Bool
}

// An endpoint is what one path serves. An empty method accepts every one. Who asks
// must have the role.
type endpoint struct {
	method string
	role   Role
	serve  func(w http.ResponseWriter, r *http.Request) *Problem
}

// New returns the API of lim.
func New(lim *mete.Limiter, config Config) (*API, error) {
	if lim == nil {
		return nil, errors.New("httpapi: new: limiter is required")
	}
	if (config.Overrides != nil || config.Reload != nil || config.Top.Tracker != nil || config.Activity != nil) && !config.Admin {
		return nil, errors.New("httpapi: new: overrides, reload, top and activity are for administrators: Admin must be set with them")
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
	a := &API{lim: lim, denial: denial, overrides: config.Overrides, role: config.Role, acted: config.Acted, done: config.Done, top: config.Top, longest: config.MaxWait, alsoRead: config.AlsoRead}
	a.top.complete()
	a.endpoints = map[string]endpoint{
		"/v1/take": {http.MethodPost, Operate, a.questions(a.take)},
		"/v1/peek": {http.MethodPost, Read, a.questions(a.peek)},
		"/livez":   {http.MethodGet, NoRole, a.livez},
		"/readyz":  {http.MethodGet, NoRole, a.readyz},

		"/openapi.json": {http.MethodGet, NoRole, a.describe},
	}
	if config.Admin {
		a.endpoints["/v1/refund"] = endpoint{http.MethodPost, Operate, a.questions(a.refund)}
		a.endpoints["/v1/reset"] = endpoint{http.MethodPost, Operate, a.questions(a.reset)}
		a.endpoints["/v1/explain"] = endpoint{http.MethodPost, Read, a.explain}
		a.endpoints[bucketPath] = endpoint{http.MethodGet, Read, a.serveBucket}
		a.endpoints[bucketPath+"/reset"] = endpoint{http.MethodPost, Operate, a.resetBucket}
		a.endpoints[bucketPath+"/take"] = endpoint{http.MethodPost, Operate, a.takeBucket}
	}
	if config.Activity != nil {
		a.endpoints[activityPath] = endpoint{http.MethodGet, Read, a.serveActivity(config.Activity)}
	}
	if a.overrides != nil {
		a.endpoints[overridesPath] = endpoint{"", Read, a.serveOverrides}
	}
	if a.top.Tracker != nil {
		a.endpoints[topPath] = endpoint{http.MethodGet, Read, a.serveTop}
	}
	if config.Reload != nil {
		a.endpoints["/v1/reload"] = endpoint{http.MethodPost, Configure, a.reload(config.Reload)}
	}
	if gateway != nil {
		a.endpoints["/v1/decision"] = endpoint{"", NoRole, gateway.serve}
	}
	return a, nil
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := a.route(w, r); p != nil {
		ratelimitfields.WriteProblem(w, r, p.Status, p)
	}
}

func (a *API) route(w http.ResponseWriter, r *http.Request) *Problem {
	e, ok := a.endpoints[r.URL.Path]
	if a.overrides != nil && strings.HasPrefix(r.URL.Path, overridesPath+"/") {
		e, ok = endpoint{http.MethodDelete, Operate, a.removeOverride}, true
	}
	switch {
	case !ok:
		return problem(http.StatusNotFound, absence(r.URL.Path))
	case e.method == "" || e.method == r.Method || e.method == http.MethodGet && r.Method == http.MethodHead:
		if p := a.permit(w, r, e.role); p != nil {
			return p
		}
		return e.serve(w, r)
	}
	allow := e.method
	if allow == http.MethodGet {
		allow += ", " + http.MethodHead
	}
	w.Header()["Allow"] = []string{allow}
	return problem(http.StatusMethodNotAllowed, r.URL.Path+" takes "+allow)
}

// absence says why there is nothing at path.
func absence(path string) string {
	switch path {
	case "/v1/decision":
		return "no gateway profile is configured; choose nginx, nginx-lua, haproxy, caddy or traefik"
	case "/v1/refund", "/v1/reset", bucketPath + "/reset", bucketPath + "/take":
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
	case overridesPath:
		return "overrides are not served here; ask at the address that is for administrators"
	}
	return "there is no such endpoint; /openapi.json says which there are"
}
