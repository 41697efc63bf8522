// SPDX-License-Identifier: Apache-2.0

// Package httplimit limits the requests that reach an [http.Handler], and paces the requests of an [http.Client]
// to the limits of servers.
//
// One line limits each client address in memory, here to 100 requests per minute with bursts of up to 20:
//
//	mux.Handle("/search", httplimit.PerAddress("100/1m", 20).Wrap(search))
//
// One line limits each API key over the store of a [mete.Limiter], which processes can share:
//
//	api := httplimit.Must(limiter, "api", "100/1m", 20, httplimit.ByHeader("X-API-Key", httplimit.MissingDeny))
//
// [New] takes settings, any number of limits, and the policy of the limiter. A request is charged by all of them
// or by none:
//
//	uploads, err := httplimit.New(limiter, httplimit.Config{},
//		httplimit.Limit{Name: "uploads", Rate: "10/1h", Burst: 10, Key: httplimit.ByAddress()},
//		httplimit.Limit{Name: "all-uploads", Rate: "100/1m", Burst: 100, Key: httplimit.Everyone()})
//	…
//	mux.Handle("POST /uploads", uploads.Wrap(handler))
//
// [Config.Denied] replaces the response to a denied request, and [Config.Exempt] exempts requests.
// [Middleware.Admit] is for frameworks with handlers of their own.
//
// # Responses
//
// An allowed request goes to the handler unchanged, with the RateLimit header fields already set on the response.
// If a limit has a queue, the request may first wait for its turn. If its client disconnects in the meantime, its
// tokens are refunded. (net/http detects that only after the body has been read, or if there is no body.)
//
// Under a concurrency limit, the request holds a slot until its response has ended: see [Admission.Serve].
//
// A denied request gets a problem body (RFC 9457) with one of these statuses:
//
//   - 429 if it came too early, with a Retry-After; without a Retry-After if it costs more than the limit can
//     ever allow.
//   - 400 if a rule reads a part that servers interpret differently, so that the request could evade the rule.
//     Examples are a path with hidden dot segments (/a/%2e%2e/b and /a/..;/b), and a repeated header field, query
//     parameter or cookie. The problem names that part.
//   - 403 if it lacks a required key (on_missing: deny, [MissingDeny]). Waiting does not help. (Package httpapi
//     responds with 429 instead, because its callers are not the clients that are denied.)
//   - 503 if the store is unavailable and a rule (on_store_error) or, for the limits of routes, the limiter
//     ([mete.Config]) fails closed. Requests that fail open pass without RateLimit fields.
//
// Shadow rules have no effect that clients can see.
//
// # Header fields
//
// The middleware sets the RateLimit fields before it calls the handler, under the keys of
// [http.CanonicalHeaderKey]. The handler can read, replace and delete them with the methods of [http.Header]:
// Get("RateLimit"), Set("RateLimit-Policy", …), Del("RateLimit-Reset"). HTTP/1 sends these keys as they are, for
// example "Ratelimit-Policy"; HTTP/2 sends them in lower case. Field names are case-insensitive in both.
//
// A [net/http/httputil.ReverseProxy] as the handler adds the fields of its upstream. If the upstream has its own
// RateLimit fields, the response would have two values of one field. [RemoveFields] as ModifyResponse prevents
// that:
//
//	limited.Wrap(&httputil.ReverseProxy{Rewrite: toUpstream, ModifyResponse: httplimit.RemoveFields})
//
// ReverseProxy deletes all header fields after it forwards an informational response such as 103. The final
// response then has no RateLimit fields. Package proxy has neither problem.
//
// # CORS
//
// A script of another origin can read a denial only if the denial has CORS fields. Put a CORS middleware around
// this one: it responds to preflights before they are limited, and it adds its fields to denials. Without a CORS
// middleware, set [Config.CORSOrigins]. Preflights have no API key and no token, so a rule by these with
// on_missing: deny rejects them. doc/cookbook.md has a policy for browsers.
//
// # Client addresses
//
// Rules by ip:address, and [ByAddress], use the address of the TCP connection. Behind a proxy, that is the
// proxy's address, and all clients share one bucket: set [Config.TrustedProxies] or [Config.TrustedHops]. Never
// use header:x-forwarded-for as a key, because clients can write it.
//
// # Ambiguous requests
//
// If a header field, query parameter or cookie that a rule or [ByHeader] reads occurs twice, the middleware
// responds with 400. Otherwise a client could be counted under one value and served under another. Rules that are
// off or in shadow mode reject nothing. Several lines of a list field, such as Accept, are one value.
//
// Go handlers read header names literally. A handler that forwards requests to CGI or WSGI should first remove
// names with "_", as package proxy does. Such programs read X_Api_Key as X-Api-Key.
//
// Rules see the path decoded once, without query and path parameters (";x=1"), with "//", "." and ".." resolved,
// as [http.ServeMux] does. If a router does not clean paths, put a handler that does in front of it, or let no
// rule match by path.
//
// # Limiting outgoing requests
//
// A [Transport] sends requests at the pace that the responses of servers allow, in order, for a whole process.
package httplimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A Middleware limits requests. Create one with [New]. It holds no buckets and is safe for concurrent use.
type Middleware struct {
	source *httpfacts.Source
	fields *ratelimitfields.Writer

	routes     []*route
	queued     bool // at least one route has a queue
	hash       hashKey
	taker      *queuewait.Taker
	onDecision func(context.Context, *mete.Decision)
	denied     func(http.ResponseWriter, *http.Request, mete.Decision)
	exempt     func(*http.Request) bool

	corsOrigins []string
	ratios      *ai.Ratios
	limiter     *mete.Limiter
	onModelCall func(context.Context, *policy.ModelCall)
	readOns     *readOns
}

// New returns a middleware that applies the given limits and the policy of limiter, which is required. At least
// one limit or a policy is required. The returned error lists every invalid setting.
func New(limiter *mete.Limiter, config Config, limits ...Limit) (*Middleware, error) {
	var errs []error
	switch {
	case limiter == nil:
		errs = append(errs, errors.New("limiter is required: create one with mete.New, or use PerAddress"))
	case limiter.Policy() == nil && len(limits) == 0:
		errs = append(errs, errors.New("a policy or a limit is required: otherwise nothing is limited"))
	}
	if config.Ratios == nil {
		config.Ratios, _ = ai.NewRatios(learnedModels)
	}
	source, err := httpfacts.New(config.facts())
	errs = append(errs, err)
	fields, err := ratelimitfields.New(config.fields())
	errs = append(errs, err)
	routes, err := newRoutes(limits)
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
		readOns: newReadOns(), ratios: config.Ratios, limiter: limiter, onModelCall: config.OnModelCall, corsOrigins: slices.Clone(config.CORSOrigins), source: source, fields: fields, routes: routes, hash: hash,
		queued: slices.ContainsFunc(routes, func(r *route) bool { return r.charge.Limit.Queued() }),
		taker:  queuewait.NewTaker(limiter, config.MaxDelay, config.MaxDelayed), onDecision: config.OnDecision, denied: config.Denied, exempt: config.Exempt,
	}, nil
}

// Wrap returns a handler that calls next for allowed requests. It passes the [http.ResponseWriter] unchanged, or in an
// observer if a limit depends on the response. So streaming, [http.Flusher], [http.Hijacker], [http.Pusher] and
// [http.ResponseController] work. Wrapping twice charges every request twice: if a route has
// its own middleware with the same policy, exclude it from the outer one.
//
// After the client of a call to a language model has hung up, next can write the rest of the response. Its tokens are charged,
// and nothing is sent. The context of the request then ends when the usage is known, at the latest after 10 minutes.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer httpfacts.FreeBody(r)
		if a, ok := m.Admit(w, r); ok {
			a.Serve(w, r, next)
		}
	})
}

// Admit decides r and reports whether it may proceed. If it may, the RateLimit fields are set in w's header.
// Otherwise Admit has written the response. Use Admit for frameworks with their own form of middleware, and Wrap
// for net/http. Limits with charge_on also need [Admission.Run]; without it, every request keeps its charge, and
// its slot of a concurrency limit for one lease.
func (m *Middleware) Admit(w http.ResponseWriter, r *http.Request) (*Admission, bool) {
	facts := m.source.Facts(r)
	defer facts.Release()
	return m.AdmitFacts(w, facts)
}

// AdmitFacts is [Middleware.Admit] for package proxy, which forwards the request based on the same facts.
func (m *Middleware) AdmitFacts(w http.ResponseWriter, facts *httpfacts.Facts) (*Admission, bool) {
	r := facts.Request()
	if m.exempt != nil && m.exempt(r) {
		return nil, true
	}
	a := newAttempt(facts)
	defer a.release()
	d, reservation, err := m.decide(r, a)
	if err == nil || r.Context().Err() == nil {
		m.report(r.Context(), &d)
	}
	if !d.Allowed {
		m.deny(w, r, &d, a)
		return nil, false
	}
	dispute := facts.Ambiguity()
	var call *aiCall
	if dispute == "" {
		call = newAICall(reservation, facts, m.ratios)
	}
	admission := newAdmission(reservation, d.Slots, call)
	admission.setCallHook(m.onModelCall, m.readOns)
	if dispute != "" {
		m.shareDenial(w.Header(), r)
		admission.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if facts.Overloaded() {
				w.Header().Set("Retry-After", "1")
				m.WriteProblem(w, r, &api.Problem{Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable, Detail: dispute})
				return
			}
			m.WriteProblem(w, r, ratelimitfields.NewAmbiguousProblem(dispute))
		}))
		return nil, false
	}
	facts.DropBody()
	m.fields.Header(w.Header(), &d)
	return admission, true
}

// ReadsBodies reports whether a rule may read the body of a request to a language model. It is for package proxy.
func (m *Middleware) ReadsBodies() bool {
	p := m.limiter.Policy()
	return p != nil && p.ReadsAI()
}

// Drain waits until ctx ends for the calls to language models whose clients have hung up. It then ends them, and they keep at
// least what they have reserved. Later ones end with their clients.
// Call it after [http.Server.Shutdown]. Drain of package proxy calls it.
func (m *Middleware) Drain(ctx context.Context) { m.readOns.drain(ctx) }

// Source returns the source of the facts for the decisions. It is for package proxy.
func (m *Middleware) Source() *httpfacts.Source { return m.source }

// Delayed returns the number of waiting requests, and the number denied because of [Config.MaxDelayed].
func (m *Middleware) Delayed() (now int, refused uint64) { return m.taker.Waiting() }

// decide takes from all limits of r. On an error it also returns a denial: the context has ended, too many limits
// apply, or an attribute is invalid. Without a response, net/http would send 200, for example when a server
// cancels its requests during shutdown.
//
// The reservation is nil unless it awaits the response.
func (m *Middleware) decide(r *http.Request, a *attempt) (mete.Decision, *mete.Reservation, error) {
	if missing := a.charge(m, r); missing != nil {
		return missingKey(missing), nil, nil
	}
	d, reservation, err := m.taker.Reserve(r.Context(), mete.Request{Attributes: a.facts, Charges: a.charges}, m.queued, nil)
	if err != nil {
		return mete.Decision{Degraded: true, Failure: store.FailureError, Reason: mete.ReasonStoreError, Err: err}, nil, err
	}
	a.setNames(&d)
	return d, reservation, nil
}

// report calls the hook with a copy, so that decisions stay off the heap without a hook.
func (m *Middleware) report(ctx context.Context, d *mete.Decision) {
	if m.onDecision != nil {
		seen := *d
		m.onDecision(ctx, &seen)
	}
}
