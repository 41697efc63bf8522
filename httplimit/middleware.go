// SPDX-License-Identifier: Apache-2.0

// Package httplimit limits the requests that reach an [http.Handler], and keeps
// the requests of an [http.Client] within the limits of others.
//
// One line limits each client address in memory, here to 100 requests per minute with
// bursts of up to 20:
//
//	mux.Handle("/search", httplimit.PerAddress("100/1m", 20).Wrap(search))
//
// One line limits each API key over the store of a [mete.Limiter], which processes can share:
//
//	api := httplimit.Must(limiter, "api", "100/1m", 20, httplimit.ByHeader("X-API-Key", httplimit.DenyMissing))
//
// [New] takes settings, any number of limits, and the policy of the limiter. A request is
// charged by all of them or by none:
//
//	uploads, err := httplimit.New(limiter, httplimit.Config{},
//		httplimit.Limit{Name: "uploads", Rate: "10/1h", Burst: 10, Key: httplimit.ByAddress()},
//		httplimit.Limit{Name: "all-uploads", Rate: "100/1m", Burst: 100, Key: httplimit.Everyone()})
//	…
//	mux.Handle("POST /uploads", uploads.Wrap(handler))
//
// [Config.Denied] replaces the answer to a denied request, and [Config.Exempt] exempts
// requests. [Middleware.Admit] is for frameworks with handlers of their own.
//
// A request that all limits allow goes on to the handler, unchanged, with the
// RateLimit header fields already set on the answer. One that a limit with a
// queue admits for later waits for its turn before it does; if its client goes
// away meanwhile, what it spent is given back. (net/http notices that once the
// body has been read, or where there is none.) One that is denied is answered
// with a problem body (RFC 9457) and
//
//   - 429 where it came too early, with Retry-After; without, where it costs
//     more than the limit can ever admit;
//   - 400 where a rule reads a part of it that servers read differently, so that it
//     could reach what has another limit: a path with hidden dot segments, as in
//     /a/%2e%2e/b and /a/..;/b, or a header field, query parameter or cookie that
//     occurs twice or in two spellings. The problem names that part.
//   - 403 where it lacks what a limit is keyed by and must not (on_missing: deny,
//     [DenyMissing]), which waiting does not mend. (Package httpapi, whose callers
//     are told of a denial and not themselves denied, answers 429.)
//   - 503 where the store could not answer and a rule fails closed
//     (on_store_error), or the limiter does for the limits of routes
//     ([mete.Config]). What fails open passes, without RateLimit fields.
//
// Shadow rules change nothing that a client can see.
//
// # Header fields
//
// The middleware sets the RateLimit fields before it calls the handler, under the
// keys of [http.CanonicalHeaderKey]. The handler can therefore read, replace and
// delete them with [http.Header]'s methods: Get("RateLimit"), Set("RateLimit-Policy", …),
// Del("RateLimit-Reset"). HTTP/1 sends these keys as they are, as in "Ratelimit-Policy".
// HTTP/2 sends them in lower case. Field names are case-insensitive in both.
//
// A handler that is a [net/http/httputil.ReverseProxy] adds the fields of its
// upstream to these. If the upstream has RateLimit fields of its own, the answer
// would have two values of one field. [RemoveFields] as ModifyResponse prevents that:
//
//	limited.Wrap(&httputil.ReverseProxy{Rewrite: toUpstream, ModifyResponse: httplimit.RemoveFields})
//
// ReverseProxy deletes all header fields after it has passed on an informational
// answer of its upstream, such as 103. The final answer then has no RateLimit fields.
// Package proxy has neither of these problems.
//
// # CORS
//
// A script of another origin can read a denial only if the denial says so. Put a
// CORS middleware around this one: it answers preflights before they are limited,
// and its fields are on denials, too. Without one, [Config.CORSOrigins] lets scripts
// read denials. Preflights have no API key and no token, so a rule by these with
// on_missing: deny refuses them. doc/cookbook.md has a policy for browsers.
//
// # Who is the client
//
// Rules that key by ip:address, and [ByAddress], see the address of the TCP
// connection. Behind a proxy that is the proxy's, and all clients share one
// bucket: name the proxies in [Config.TrustedProxies] or [Config.TrustedHops].
// Never key by header:x-forwarded-for, which clients write themselves.
//
// A header field, a query parameter or a cookie that a rule or [ByHeader] reads and
// that occurs twice is answered with 400: a client cannot be counted under one value and
// served under another. Rules that are off or in shadow refuse nothing. Lines of a field that is a list, such as Accept, are one value. Handlers
// of Go read names of header fields as they are. A handler that hands requests on to CGI
// or WSGI should first remove the names with "_", as package proxy does: such
// programs take X_Api_Key for X-Api-Key. The path is decoded once, without its query and path parameters
// (";x=1"), and cleaned of "//", "." and "..". That is how [http.ServeMux] routes;
// before a handler that does not clean paths, such as many third-party routers, put
// one that does, or let no rule match by path.
//
// # The other side
//
// A [Transport] sends requests to servers that limit: at the pace that their
// answers allow, in order, for a whole process.
package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/turn"
	"github.com/metehq/mete/store"
)

// A Middleware limits requests. It is made by [New], keeps no bucket of its
// own, and is safe for concurrent use.
type Middleware struct {
	source *httpfacts.Source
	fields *ratelimitfields.Writer

	routes     []*route
	queued     bool // one of them has a queue
	hash       hashKey
	turns      *turn.Taker
	onDecision func(context.Context, *mete.Decision)
	denied     func(http.ResponseWriter, *http.Request, mete.Decision)
	exempt     func(*http.Request) bool

	corsOrigins []string
}

// New returns a middleware that decides by limiter, which is required, and its
// policy, and by the limits given here. There must be either, at least. The error
// names every mistake.
func New(limiter *mete.Limiter, config Config, limits ...Limit) (*Middleware, error) {
	var errs []error
	switch {
	case limiter == nil:
		errs = append(errs, errors.New("limiter is required: make one with mete.New, or use PerAddress"))
	case limiter.Policy() == nil && len(limits) == 0:
		errs = append(errs, errors.New("there is neither a policy nor a limit: nothing would be limited"))
	}
	source, err := httpfacts.New(config.facts())
	errs = append(errs, err)
	fields, err := ratelimitfields.New(config.fields())
	errs = append(errs, err)
	routes, err := routes(limits)
	errs = append(errs, err)
	hash, err := newHashKey(config.HashKey, limiter, limits)
	errs = append(errs, err)
	errs = append(errs, CheckCORSOrigins(config.CORSOrigins))
	if config.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("max delay %v: must not be negative", config.MaxDelay))
	}
	if config.MaxDelayed < 0 {
		errs = append(errs, fmt.Errorf("max delayed %d: must not be negative", config.MaxDelayed))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("httplimit: new: %w", err)
	}
	return &Middleware{
		corsOrigins: slices.Clone(config.CORSOrigins), source: source, fields: fields, routes: routes, hash: hash,
		queued: slices.ContainsFunc(routes, func(r *route) bool { return r.charge.Limit.Queued() }),
		turns:  turn.NewTaker(limiter, config.MaxDelay, config.MaxDelayed), onDecision: config.OnDecision, denied: config.Denied, exempt: config.Exempt,
	}, nil
}

// Wrap returns a handler that calls next for the requests that are allowed. It
// passes the request and the [http.ResponseWriter] on as they are, so that
// streaming, [http.Hijacker] and [http.ResponseController] work. Wrapping twice
// charges every request twice: a route whose handler has a middleware with limits
// of its own, and the same policy, is left out of the one around everything.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.Admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Admit decides r and reports whether it may go on. If it may, the RateLimit fields are
// set in w's header. If it may not, Admit has answered it. Wrap does the same for handlers
// of net/http. Admit is for frameworks with another form of middleware.
func (m *Middleware) Admit(w http.ResponseWriter, r *http.Request) bool {
	facts := m.source.Facts(r)
	defer facts.Release()
	return m.AdmitFacts(w, facts)
}

// AdmitFacts is [Middleware.Admit] for a request whose facts the caller has read. It is for
// package proxy, which sends the request on by the same facts.
func (m *Middleware) AdmitFacts(w http.ResponseWriter, facts *httpfacts.Facts) bool {
	r := facts.Request()
	if m.exempt != nil && m.exempt(r) {
		return true
	}
	a := ask(facts)
	defer a.release()
	d, err := m.decide(r, a)
	if err == nil || r.Context().Err() == nil {
		m.report(r.Context(), &d)
	}
	if !d.Allowed {
		m.deny(w, r, &d, a)
		return false
	}
	if dispute := facts.Dispute(); dispute != "" {
		m.shareDenial(w.Header(), r)
		ratelimitfields.Write(w, r, ratelimitfields.Disputed(dispute))
		return false
	}
	m.fields.Header(w.Header(), &d)
	return true
}

// Source returns the source of the facts by which the middleware decides. It is for package
// proxy.
func (m *Middleware) Source() *httpfacts.Source { return m.source }

// Delayed returns how many requests wait for their turn now, and how many were denied
// because so many did: see [Config.MaxDelayed].
func (m *Middleware) Delayed() (now int, refused uint64) { return m.turns.Held() }

// decide takes from all limits of r. With an error, the decision is the denial of a request
// that could not be decided: its context has ended, too many limits apply, or an attribute
// is invalid. A server that cancels its requests to shut down needs that denial: without an
// answer, net/http would send 200.
func (m *Middleware) decide(r *http.Request, a *asking) (mete.Decision, error) {
	if missing := a.charge(m, r); missing != nil {
		return lacking(missing), nil
	}
	d, err := m.turns.Take(r.Context(), mete.Request{Attributes: a.facts, Charges: a.charges}, m.queued, nil)
	if err != nil {
		return mete.Decision{Degraded: true, Failure: store.FailureError, Reason: mete.ReasonStoreError, Err: err}, err
	}
	a.name(&d)
	return d, nil
}

// report calls the hook with a copy, so that decisions without a hook need not
// live on the heap.
func (m *Middleware) report(ctx context.Context, d *mete.Decision) {
	if m.onDecision != nil {
		seen := *d
		m.onDecision(ctx, &seen)
	}
}
