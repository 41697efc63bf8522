// SPDX-License-Identifier: Apache-2.0

package envoyapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/forwardauth"
	"github.com/metehq/mete/internal/httpfacts"
)

// An Authorization answers Envoy's external authorization service v3 (ext_authz) with a limiter and its policy. Rules
// see the same attributes as in an HTTP server, and the client gets the same status, header fields and body. It is
// safe for concurrent use. Register it with authv3.RegisterAuthorizationServer.
//
// A context extension KEY of the route is the custom attribute envoy:context:KEY.
//
// Let Envoy send raw header fields (encode_raw_headers). Otherwise it joins repeated fields with a comma. An
// Authorization then treats a field that is not a list as repeated if a comma without a following space occurs in it.
type Authorization struct {
	authv3.UnimplementedAuthorizationServer

	decider  *forwardauth.Decider
	callers  []netip.Prefix // empty: every caller is trusted
	onMisuse func(detail string)
	cache    metadataCache
}

// NewAuthorization returns an authorization service that decides by lim. Its error has a line for each invalid setting.
func NewAuthorization(lim *mete.Limiter, c AuthorizationConfig) (*Authorization, error) {
	if lim == nil {
		return nil, errors.New("envoyapi: authorization: a limiter is required: create one with mete.New")
	}
	trust := httpfacts.Trust{Proxies: c.TrustedProxies, Hops: c.TrustedHops, Header: c.ForwardedHeader}
	// Check the settings of the caller before newTrust changes them.
	if err := trust.Check(); err != nil {
		return nil, fmt.Errorf("envoyapi: authorization: %w", err)
	}
	decider, err := forwardauth.New(lim, forwardauth.Config{
		Trust: newTrust(trust), Attribute: withExtensions(c.Attribute), UnverifiedClaims: c.UnverifiedClaims,
		Fields: c.Fields, DisableJitter: c.DisableJitter, JitterKey: c.JitterKey,
		MaxDelay: c.MaxDelay, MaxDelayed: c.MaxDelayed,
	})
	if err != nil {
		return nil, fmt.Errorf("envoyapi: authorization: %w", err)
	}
	if c.OnMisuse == nil {
		c.OnMisuse = func(string) {}
	}
	return &Authorization{decider: decider, callers: slices.Clone(c.TrustedProxies), onMisuse: c.OnMisuse}, nil
}

// Check implements Envoy's external authorization service. A denial is an answer. The errors are:
//
//   - PERMISSION_DENIED: the caller is not a trusted proxy.
//   - INVALID_ARGUMENT: the call describes no HTTP request.
//   - DEADLINE_EXCEEDED and CANCELED: the call ended before the decision.
//
// Envoy then rejects the request, or forwards it if failure_mode_allow is set.
func (a *Authorization) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if !a.trusts(ctx) {
		return nil, a.rejectMisuse(codes.PermissionDenied, "the sender is not a trusted gateway; add its address to the trusted proxies")
	}
	sent := req.GetAttributes().GetRequest().GetHttp()
	if sent == nil {
		return nil, a.rejectMisuse(codes.InvalidArgument, "the call describes no HTTP request; use the HTTP filter envoy.filters.http.ext_authz")
	}
	limited, cancel := leaveTime(ctx)
	defer cancel()
	t := translations.Get().(*translation)
	defer t.release()
	original, problem := t.request(limited, req.GetAttributes(), sent)
	if problem != nil {
		return a.reject(problem), nil
	}
	answer := a.decider.Decide(limited, original, nil)
	defer answer.Release()
	if answer.Err != nil && limited.Err() != nil {
		return nil, status.FromContextError(limited.Err()).Err()
	}
	return a.respond(&answer, original), nil
}

// trusts reports whether a trusted proxy is the caller. A call without a peer is not from the network.
func (a *Authorization) trusts(ctx context.Context) bool {
	from, remote := peer.FromContext(ctx)
	if len(a.callers) == 0 || !remote {
		return true
	}
	addr, err := netip.ParseAddrPort(from.Addr.String())
	if err != nil { // a Unix socket, which has no address to trust
		return false
	}
	host := addr.Addr().Unmap().WithZone("")
	return slices.ContainsFunc(a.callers, func(p netip.Prefix) bool { return p.Contains(host) })
}

func (a *Authorization) rejectMisuse(code codes.Code, detail string) error {
	a.onMisuse(detail)
	return status.Error(code, "envoyapi: authorization: "+detail)
}

// answerShare is the part of the time until the caller's deadline that is left for the way back: one in answerShare.
const answerShare = 10

// leaveTime returns a context that ends before the caller's deadline. An answer at the deadline would be too late,
// and the tokens would be lost.
func leaveTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/answerShare))
}

// newTrust returns the trust in the proxies of a check, in which the connection is the one to Envoy. Envoy is then not
// one of the hops. It writes the address of its peer in X-Forwarded-For only if use_remote_address is set.
func newTrust(t httpfacts.Trust) httpfacts.Trust {
	if t.Hops > 0 && (t.Header == "" || http.CanonicalHeaderKey(t.Header) == "X-Forwarded-For") {
		t.Hops, t.PeerInList = t.Hops-1, true
	}
	return t
}
