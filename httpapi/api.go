// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/ratelimitfields"
)

const (
	// MaxBodyBytes bounds the body of a request. What is longer is answered
	// with 413 and not read.
	MaxBodyBytes = 64 << 10

	// DefaultMaxBatch is [Config.MaxBatch] where that is 0.
	DefaultMaxBatch = 100

	// maxMaxBatch bounds Config.MaxBatch: no body can hold more requests.
	maxMaxBatch = MaxBodyBytes / len(`{"attributes":{}},`)
)

// Config are an [API]'s optional settings.
type Config struct {
	// MaxBatch is the most requests one batch may hold: [DefaultMaxBatch] if 0.
	MaxBatch int

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
	maxBatch  int
	endpoints map[string]endpoint
	browsers  http.CrossOriginProtection
	denial    *ratelimitfields.Writer // Retry-After of a single denial
	draining  atomic.Bool
}

// An endpoint is what one path serves. An empty method accepts every one.
type endpoint struct {
	method string
	serve  func(w http.ResponseWriter, r *http.Request) *Problem
}

// New returns the API of lim.
func New(lim *mete.Limiter, config Config) (*API, error) {
	if lim == nil {
		return nil, errors.New("httpapi: new: limiter is required")
	}
	if config.MaxBatch < 0 || config.MaxBatch > maxMaxBatch {
		return nil, fmt.Errorf("httpapi: new: max batch %d: must be between 1 and %d, or 0 for %d",
			config.MaxBatch, maxMaxBatch, DefaultMaxBatch)
	}
	gateway, err := newGateway(lim, config.Gateway)
	if err != nil {
		return nil, fmt.Errorf("httpapi: new: %w", err)
	}
	// The caller is a program with the exact wait at hand, not one of a crowd.
	denial, err := ratelimitfields.New(ratelimitfields.Config{Dialects: []string{"none"}, DisableJitter: true})
	if err != nil {
		return nil, fmt.Errorf("httpapi: new: %w", err)
	}
	a := &API{lim: lim, maxBatch: config.MaxBatch, denial: denial}
	if a.maxBatch == 0 {
		a.maxBatch = DefaultMaxBatch
	}
	a.endpoints = map[string]endpoint{
		"/v1/take":   {http.MethodPost, a.questions(a.take)},
		"/v1/peek":   {http.MethodPost, a.questions(a.peek)},
		"/v1/refund": {http.MethodPost, a.questions(a.refund)},
		"/v1/reset":  {http.MethodPost, a.questions(a.reset)},
		"/livez":     {http.MethodGet, a.livez},
		"/readyz":    {http.MethodGet, a.readyz},
	}
	if gateway != nil {
		a.endpoints["/v1/decision"] = endpoint{"", gateway.serve}
	}
	return a, nil
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := a.route(w, r); p != nil {
		p.serve(w)
	}
}

func (a *API) route(w http.ResponseWriter, r *http.Request) *Problem {
	e, ok := a.endpoints[r.URL.Path]
	switch {
	case !ok && r.URL.Path == "/v1/decision":
		return problem(http.StatusNotFound, "no gateway profile is configured; choose nginx, traefik or caddy")
	case !ok:
		return problem(http.StatusNotFound, "there is no such endpoint; see /v1/take, /v1/peek, /v1/refund, /v1/reset, /v1/decision, /livez, /readyz")
	case e.method == "" || e.method == r.Method || e.method == http.MethodGet && r.Method == http.MethodHead:
		return e.serve(w, r)
	}
	allow := e.method
	if allow == http.MethodGet {
		allow += ", " + http.MethodHead
	}
	w.Header()["Allow"] = []string{allow}
	return problem(http.StatusMethodNotAllowed, strings.TrimPrefix(r.URL.Path, "/v1")+" takes "+allow)
}
