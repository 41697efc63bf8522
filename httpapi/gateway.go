// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/forwardauth"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// Gateway configures /v1/decision. The zero value disables the endpoint.
type Gateway struct {
	// Profile identifies the kind of gateway.
	Profile Profile

	// TrustedProxies are the addresses of the gateway and the proxies in front of it, at most 1024 prefixes. The
	// client is the rightmost address in ForwardedHeader that is not a trusted proxy. Requests from other
	// addresses get a 403.
	TrustedProxies []netip.Prefix

	// TrustedHops is the number of proxies that every request has passed, including the gateway, at most 32. Use
	// it if their addresses are unknown. Every sender is then trusted. With a profile, set exactly one of
	// TrustedHops and TrustedProxies; otherwise every client would have the gateway's address.
	TrustedHops int

	// ForwardedHeader is the header in which the trusted proxies write client addresses. Other headers are
	// ignored. Empty means X-Forwarded-For.
	ForwardedHeader string

	// Attribute, if not nil, returns the policy's jwt: and custom attributes. It receives the client's request as
	// the gateway described it and must be safe for concurrent use. It should return only verified claims. If the
	// policy reads jwt: attributes, the API also calls it with jwt:sub for denied requests, to compute the
	// jitter.
	Attribute func(*http.Request, policy.Attribute) (value string, ok bool)

	// UnverifiedClaims reads jwt: attributes from the bearer token WITHOUT verifying it. Set it only if the
	// gateway verifies the token first. Attribute is then called for custom attributes only.
	UnverifiedClaims bool

	// Fields are the dialects of the RateLimit header fields: any of "draft-11", "legacy" and "x", or only
	// "none". Empty means draft-11 and legacy.
	Fields []string

	// DisableJitter makes Retry-After the exact wait, rounded up to seconds; see
	// [github.com/metehq/mete/httplimit.Config].
	DisableJitter bool

	// JitterKey is the key of the hash that computes each client's jitter. Servers that serve the same clients
	// should share it. If empty, the key is random.
	JitterKey []byte

	// MaxDelay bounds how long a response is delayed while the request waits in the queue of a leaky bucket. Zero
	// means 30 seconds. A request with a longer wait is denied with a Retry-After. Gateway timeouts should be
	// longer than MaxDelay.
	MaxDelay time.Duration

	// MaxDelayed bounds the responses that are delayed at the same time. One key may have a quarter of them. Zero
	// means 4096. Excess requests are denied.
	MaxDelayed int

	// OnMisuse, if not nil, receives the reason when a gateway request is unusable: the sender is not trusted, or
	// headers of the profile are missing. Misconfigured gateways often do not report such errors. OnMisuse must
	// be safe for concurrent use and must not block. detail contains nothing from the request.
	OnMisuse func(detail string)
}

// statusField carries the real status for a gateway that can only receive 403.
const statusField = "X-Ratelimit-Status"

type gateway struct {
	decider  *forwardauth.Decider
	profile  profile
	onMisuse func(detail string)
}

// newGateway returns nil if config has no profile.
func newGateway(lim *mete.Limiter, config Gateway) (*gateway, error) {
	if config.Profile == "" {
		return nil, nil
	}
	trust := httpfacts.Trust{Proxies: config.TrustedProxies, Hops: config.TrustedHops, Header: config.ForwardedHeader}
	var errs []error
	if trust.IsZero() {
		errs = append(errs, errors.New("gateway: trusted proxies or trusted hops are required: "+
			"without them, all clients would have the gateway's address"))
	}
	profile, err := config.Profile.headers()
	errs = append(errs, err)
	decider, err := forwardauth.New(lim, forwardauth.Config{
		Trust: trust, Attribute: config.Attribute, UnverifiedClaims: config.UnverifiedClaims,
		Fields: config.Fields, DisableJitter: config.DisableJitter, JitterKey: config.JitterKey,
		MaxDelay: config.MaxDelay, MaxDelayed: config.MaxDelayed,
	})
	errs = append(errs, err)
	if config.OnMisuse == nil {
		config.OnMisuse = func(string) {}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &gateway{decider: decider, profile: profile, onMisuse: config.OnMisuse}, nil
}

func (g *gateway) serve(w http.ResponseWriter, r *http.Request) *api.Problem {
	if !g.decider.Trusts(r) {
		return g.rejectMisuse(api.NewProblem(http.StatusForbidden, "the sender is not a trusted gateway; add its address to the trusted proxies"))
	}
	original, p := g.profile.originalRequest(r)
	if p != nil {
		return g.rejectMisuse(p)
	}
	answer := g.decider.Decide(r.Context(), original, func(wait time.Duration) { extendDeadlines(w, wait) })
	defer answer.Release()
	out := w
	if g.profile.onlyForbidden {
		out = forbiddenWriter{w}
	}
	out.Header()["Cache-Control"] = noStore
	answer.Write(out, r)
	return nil
}

func (g *gateway) rejectMisuse(p *api.Problem) *api.Problem {
	g.onMisuse(p.Detail)
	return p
}

// A forbiddenWriter replaces error statuses with 403 and writes the original status to a header. nginx's auth_request
// passes 401 and 403 on but turns the others into 500.
type forbiddenWriter struct{ http.ResponseWriter }

func (w forbiddenWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest && status != http.StatusUnauthorized && status != http.StatusForbidden {
		w.Header()[statusField] = []string{strconv.Itoa(status)}
		status = http.StatusForbidden
	}
	w.ResponseWriter.WriteHeader(status)
}
