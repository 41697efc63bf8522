// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/internal/turn"
	"github.com/metehq/mete/policy"
)

// Gateway configures /v1/decision. Its zero value turns the endpoint off.
type Gateway struct {
	// Profile says which gateway asks.
	Profile Profile

	// TrustedProxies are the addresses of the gateway and of the proxies in
	// front of it, at most 1024 prefixes. The client is the rightmost hop in
	// ForwardedHeader that is not one of them. Whoever else asks is answered
	// with 403: its word about a request is worth nothing.
	TrustedProxies []netip.Prefix

	// TrustedHops is how many proxies every request has passed, the gateway
	// included, at most 32: for those whose addresses are not known. Everybody
	// who can reach the endpoint is then trusted. With a profile, either this
	// or TrustedProxies is required, and both are an error: the address of
	// every client would else be the gateway's.
	TrustedHops int

	// ForwardedHeader names the one header the trusted proxies write clients'
	// addresses to; others are ignored. If empty, X-Forwarded-For.
	ForwardedHeader string

	// Attribute, if set, supplies the policy's jwt: and custom attributes. It is
	// given the client's request as the gateway described it, and must be safe
	// for concurrent use. Only verified claims should be supplied.
	// Where the policy reads jwt: attributes, the front door also asks for jwt:sub of
	// denied requests, for their jitter.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims takes jwt: attributes from the bearer token WITHOUT
	// verifying it. Set it only where the gateway has verified the token before
	// it asks. Attribute is then asked for custom attributes only.
	UnverifiedClaims bool

	// Fields are the dialects of the RateLimit header fields: any of "draft-11",
	// "legacy" and "x", or "none" alone. If empty, draft-11 and legacy.
	Fields []string

	// DisableJitter makes Retry-After the plain wait, rounded up to seconds; see
	// [github.com/metehq/mete/httplimit.Config].
	DisableJitter bool

	// JitterKey keys the hash that makes each client's jitter. Servers that
	// answer the same clients should share it. If empty, it is made at random.
	JitterKey []byte

	// MaxDelay is the longest that an answer is held back because the request is
	// in the queue of a leaky bucket. If zero, 30 seconds. A request that would
	// have to wait longer is denied, and told to come back when it would not.
	// Gateways should wait for longer than this.
	MaxDelay time.Duration

	// MaxDelayed is how many answers are held back at a time, those of one key a
	// quarter of that. If zero, 4096. One more request is denied.
	MaxDelayed int

	// Misasked, if set, is told what is wrong where the endpoint is asked in a way that
	// nothing can be decided by: by who is not trusted, or without the headers of the
	// profile. A gateway that is not set up well is often silent about it. It must be
	// safe for concurrent use, and not block; what it is told has nothing of the request.
	Misasked func(detail string)
}

// statusField tells a gateway of which only 403 comes through what was meant.
const statusField = "X-Ratelimit-Status"

type gateway struct {
	turns   *turn.Taker
	profile profile
	source  *httpfacts.Source
	fields  *ratelimitfields.Writer
	misused func(detail string)
}

// newGateway returns nil where config has no profile.
func newGateway(lim *mete.Limiter, config Gateway) (*gateway, error) {
	if config.Profile == "" {
		return nil, nil
	}
	trust := httpfacts.Trust{Proxies: config.TrustedProxies, Hops: config.TrustedHops, Header: config.ForwardedHeader}
	var errs []error
	if trust.IsZero() {
		errs = append(errs, errors.New("gateway: trusted proxies or trusted hops are required: "+
			"without them, all clients have the address of the gateway"))
	}
	profile, err := config.Profile.headers()
	errs = append(errs, err)
	source, err := httpfacts.New(httpfacts.Config{Trust: trust, Extra: config.Attribute, UnverifiedClaims: config.UnverifiedClaims, LookAlikes: true})
	errs = append(errs, err)
	fields, err := ratelimitfields.New(ratelimitfields.Config{
		Dialects: config.Fields, DisableJitter: config.DisableJitter, JitterKey: config.JitterKey})
	errs = append(errs, err)
	if config.MaxDelay < 0 {
		errs = append(errs, fmt.Errorf("gateway: max delay %v: must not be below 0", config.MaxDelay))
	}
	if config.MaxDelayed < 0 {
		errs = append(errs, fmt.Errorf("gateway: max delayed %d: must not be below 0", config.MaxDelayed))
	}
	if config.Misasked == nil {
		config.Misasked = func(string) {}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &gateway{turns: turn.NewTaker(lim, config.MaxDelay, config.MaxDelayed), profile: profile, source: source, fields: fields, misused: config.Misasked}, nil
}

// serve answers whether the request that the gateway describes may happen.
func (g *gateway) serve(w http.ResponseWriter, r *http.Request) *api.Problem {
	if !g.source.Trusts(r) {
		return g.misasked(api.NewProblem(http.StatusForbidden, "only trusted gateways may ask; add the address of this one to the trusted proxies"))
	}
	original, p := g.profile.original(r)
	if p != nil {
		return g.misasked(p)
	}
	facts := g.source.Facts(original)
	defer facts.Release()
	d, err := g.turns.Take(r.Context(), mete.Request{Attributes: facts}, false, func(wait time.Duration) { hold(w, wait) })
	if g.profile.onlyForbidden {
		w = forbidding{w}
	}
	w.Header()["Cache-Control"] = noStore
	dispute := facts.Dispute()
	switch {
	case err != nil:
		g.fields.Unavailable(w, r, facts.Client(&d)...)
	case !d.Allowed:
		g.fields.Deny(w, r, &d, facts.Client(&d)...)
	case dispute != "":
		ratelimitfields.Write(w, r, ratelimitfields.Disputed(dispute))
	default:
		g.fields.Header(w.Header(), &d)
		w.WriteHeader(http.StatusOK)
	}
	return nil
}

func (g *gateway) misasked(p *api.Problem) *api.Problem {
	g.misused(p.Detail)
	return p
}

// forbidding answers 403 in place of 400, 429 and 503, and says in a header which
// it was. nginx's auth_request lets 403 pass and turns those into 500.
type forbidding struct{ http.ResponseWriter }

func (w forbidding) WriteHeader(status int) {
	switch status {
	case http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header()[statusField] = []string{strconv.Itoa(status)}
		status = http.StatusForbidden
	}
	w.ResponseWriter.WriteHeader(status)
}
