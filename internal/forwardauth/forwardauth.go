// SPDX-License-Identifier: Apache-2.0

// Package forwardauth answers gateways that ask about each request before they forward it. All such adapters share
// it, so that a request gets the same status, header fields and body through each of them.
package forwardauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/queuewait"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

// Config configures a [Decider]. The zero Config trusts only the connection that the request describes.
type Config struct {
	// Trust configures the proxies that clients pass.
	Trust httpfacts.Trust

	// Attribute, if not nil, returns jwt: and custom attributes. It may be called concurrently.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims is as in [httpfacts.Config].
	UnverifiedClaims bool

	// Fields, DisableJitter and JitterKey are as in [ratelimitfields.Config].
	Fields        []string
	DisableJitter bool
	JitterKey     []byte

	// MaxDelay and MaxDelayed bound waits in queues: see [queuewait.NewTaker].
	MaxDelay   time.Duration
	MaxDelayed int
}

// A Decider decides the requests of gateways. It is safe for concurrent use.
type Decider struct {
	taker  *queuewait.Taker
	source *httpfacts.Source
	fields *ratelimitfields.Writer
}

// New returns a decider for lim. Its error has a line for each invalid setting.
func New(lim *mete.Limiter, config Config) (*Decider, error) {
	source, sourceErr := httpfacts.New(httpfacts.Config{
		Trust: config.Trust, Extra: config.Attribute, UnverifiedClaims: config.UnverifiedClaims, LookAlikes: true, HeaderOnly: true})
	fields, fieldsErr := ratelimitfields.New(ratelimitfields.Config{
		Dialects: config.Fields, DisableJitter: config.DisableJitter, JitterKey: config.JitterKey})
	errs := []error{sourceErr, fieldsErr}
	if config.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("gateway: max delay %v: must not be negative", config.MaxDelay))
	}
	if config.MaxDelayed < 0 {
		errs = append(errs, fmt.Errorf("gateway: max delayed %d: must not be negative", config.MaxDelayed))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Decider{taker: queuewait.NewTaker(lim, config.MaxDelay, config.MaxDelayed), source: source, fields: fields}, nil
}

// Trusts reports whether a trusted proxy opened the connection of r.
func (d *Decider) Trusts(r *http.Request) bool { return d.source.Trusts(r) }

// An Answer is the outcome of one request. The caller must call [Answer.Release].
type Answer struct {
	// Decision is the limiter's decision. It is meaningless if Err is not nil.
	Decision mete.Decision

	// Ambiguity describes the part of an allowed request that servers may interpret differently, or is empty. The
	// answer is then a 400.
	Ambiguity string

	// Err is the reason why no decision was possible, or nil. The answer is then a 503.
	Err error

	fields *ratelimitfields.Writer
	facts  *httpfacts.Facts
}

// Decide decides original, the client's request as the gateway described it, and waits for its turn in queues. If
// a wait is necessary, Decide calls before with the longest possible wait first.
func (d *Decider) Decide(ctx context.Context, original *http.Request, before func(time.Duration)) Answer {
	a := Answer{fields: d.fields, facts: d.source.Facts(original)}
	a.Decision, a.Err = d.taker.Take(ctx, mete.Request{Attributes: a.facts}, false, before)
	if a.Err == nil && a.Decision.Allowed {
		a.Ambiguity = a.facts.Ambiguity()
	}
	return a
}

// Allowed reports whether the gateway may forward the request.
func (a *Answer) Allowed() bool { return a.Err == nil && a.Decision.Allowed && a.Ambiguity == "" }

// Write writes the answer. r is the request that w responds to: a HEAD request gets no body.
func (a *Answer) Write(w http.ResponseWriter, r *http.Request) {
	switch {
	case a.Err != nil:
		a.fields.Unavailable(w, r, a.facts.Client(&a.Decision)...)
	case !a.Decision.Allowed:
		a.fields.Deny(w, r, &a.Decision, a.facts.Client(&a.Decision)...)
	case a.Ambiguity != "":
		ratelimitfields.Write(w, r, ratelimitfields.NewAmbiguousProblem(a.Ambiguity))
	default:
		a.fields.Header(w.Header(), &a.Decision)
		w.WriteHeader(http.StatusOK)
	}
}

// Release frees the resources of a.
func (a *Answer) Release() { a.facts.Release() }

// ParseTarget parses the target of a client's request, such as /path?query.
func ParseTarget(target string) (*url.URL, error) {
	if strings.ContainsAny(target, " \t") {
		return nil, errors.New("forwardauth: the target contains white space")
	}
	return url.ParseRequestURI(target)
}
