// SPDX-License-Identifier: Apache-2.0

// Package httplimit limits the requests that reach an [http.Handler].
//
//	limited, err := httplimit.New(limiter, httplimit.Config{})
//	…
//	http.Handle("/", limited.Wrap(handler))
//
// A request that the policy allows goes on to the handler, unchanged, with the
// RateLimit header fields already set on the answer. One that it denies is
// answered with a problem body (RFC 9457) and
//
//   - 429 where it came too early, with Retry-After; without, where it costs
//     more than the limit can ever admit;
//   - 403 where it lacks an attribute that a rule insists on (on_missing: deny),
//     which waiting does not mend. (Package httpapi, whose callers are told of a
//     denial and not themselves denied, answers 429.)
//   - 503 where the store could not answer and a rule fails closed. Rules that
//     fail open let the request pass, without RateLimit fields.
//
// Shadow rules change nothing that a client can see. Scripts in browsers see the
// fields of another origin only if Access-Control-Expose-Headers names them,
// which is for the handler to say.
//
// # Who is the client
//
// Rules that key by ip:address see the address of the TCP connection. Behind a
// proxy that is the proxy's, and all clients share one bucket: name the proxies
// in [Config.TrustedProxies] or [Config.TrustedHops]. Never key by
// header:x-forwarded-for, which clients write themselves.
//
// Of headers, query parameters and cookies that occur several times the first
// one counts. The path is decoded once and cleaned of "//", "." and ".."; a
// handler that reads paths otherwise needs rules that do not match by path.
package httplimit

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// A Middleware limits requests. It is made by [New], keeps no state of its own,
// and is safe for concurrent use.
type Middleware struct {
	limiter *mete.Limiter
	source  *httpfacts.Source
	fields  *ratelimitfields.Writer
}

// New returns a middleware that decides by limiter, which is required. The error
// names every mistake in config.
func New(limiter *mete.Limiter, config Config) (*Middleware, error) {
	var errs []error
	if limiter == nil {
		errs = append(errs, errors.New("limiter is required"))
	}
	source, err := httpfacts.New(config.facts())
	errs = append(errs, err)
	fields, err := ratelimitfields.New(config.fields())
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("httplimit: new: %w", err)
	}
	return &Middleware{limiter: limiter, source: source, fields: fields}, nil
}

// Wrap returns a handler that calls next for the requests that are allowed. It
// passes the request and the [http.ResponseWriter] on as they are, so that
// streaming, [http.Hijacker] and [http.ResponseController] work. Wrapping twice
// charges every request twice.
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// Trusts reports whether whoever opened r's connection is a trusted proxy, whose
// X-Forwarded header fields can be believed: see [Config.TrustedProxies]. Under
// [Config.TrustedHops] everybody is.
func (m *Middleware) Trusts(r *http.Request) bool { return m.source.Trusts(r) }

// admit decides r, and answers it where it may not go on.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request) bool {
	facts := m.source.Facts(r)
	defer facts.Release()
	d, err := m.limiter.Take(r.Context(), mete.Request{Attributes: facts})
	switch {
	case err != nil:
		// The request's context has ended. A client that is gone sees no answer,
		// but a server that cancels its requests to shut down would, without
		// one, say 200 to all of them.
		m.fields.Unavailable(w, r, facts.Client(&d)...)
	case !d.Allowed:
		m.fields.Deny(w, r, &d, facts.Client(&d)...)
	default:
		m.fields.Header(w.Header(), &d)
	}
	return err == nil && d.Allowed
}
