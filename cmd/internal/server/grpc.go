// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/grpcserver"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/telemetry"
	"github.com/metehq/mete/envoyapi"
	"github.com/metehq/mete/httpapi"
)

// grpcProtocols are the protocols of the gRPC address for ALPN.
var grpcProtocols = []string{"h2"}

// A grpcListener serves the services for Envoy.
type grpcListener struct {
	*grpcserver.Server
	socket *socket
}

func (l *grpcListener) Serve() error { return l.Server.Serve(l.socket) }

func (l *grpcListener) stats() metrics.Listener {
	return metrics.Listener{
		Name: "grpc", Connections: l.socket.CountOpen(), CertificateExpires: l.socket.expires(),
		InFlight: l.CountInFlight(), Refused: l.CountRefused(), Full: l.socket.CountFull(),
	}
}

// grpcListener returns the listener of the gRPC address.
func (a *assembly) grpcListener(s *socket, b *buckets, claims claimReader, access *access, watch *telemetry.Watch) (*grpcListener, error) {
	c := a.config
	rates, err := envoyapi.NewRateLimit(a.limiter, envoyapi.RateLimitConfig{Dialects: c.RateLimitFields, DisableJitter: !c.Jitter, MayRefund: mayRefund})
	if err != nil {
		return nil, err
	}
	misasked := limitErrors(a.log, "unusable request for Envoy's external authorization, check the configuration of Envoy")
	checks, err := envoyapi.NewAuthorization(a.limiter, envoyapi.AuthorizationConfig{
		TrustedProxies:   c.TrustedProxies,
		TrustedHops:      c.TrustedHops,
		ForwardedHeader:  c.ForwardedHeader,
		Attribute:        claims,
		UnverifiedClaims: c.TrustJWT,
		Fields:           c.RateLimitFields,
		DisableJitter:    !c.Jitter,
		JitterKey:        b.keyFor("jitter"),
		MaxDelayed:       c.MaxDelayed,
		OnMisuse:         func(detail string) { misasked(errors.New(detail)) },
	})
	if err != nil {
		return nil, err
	}
	options := grpcserver.Config{
		Health: a.checkReady, TLS: s.tls, MaxInFlight: c.MaxInFlight, MaxHeaderBytes: uint32(c.MaxHeaderBytes),
		MaxStreams: maxStreams, MaxMessageBytes: maxCallBytes,
		IdleTimeout: c.Timeouts.GRPCIdle, HandshakeTimeout: c.Timeouts.ReadHeader, AgeGrace: c.Timeouts.Drain, Log: a.log,
		Interceptors: []grpc.UnaryServerInterceptor{watchCalls(watch)},
	}
	options.Authorize = access.identifyCall
	if c.RequiresToken(c.GRPCListen, c.GRPCTLS) {
		options.Authorize = access.authorizeCall
	}
	server := grpcserver.New(options)
	ratelimitv3.RegisterRateLimitServiceServer(server, rates)
	authv3.RegisterAuthorizationServer(server, checks)
	return &grpcListener{server, s}, nil
}

// maxCallBytes bounds a gRPC message. gRPC reads a whole message before the server can check the token, so strangers can
// hold as much memory in each stream.
const maxCallBytes = 256 << 10

// watchCalls returns an interceptor that measures decisions.
func watchCalls(watch *telemetry.Watch) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		ctx, end := watch.Begin(ctx, callEndpoint(info.FullMethod))
		defer end()
		return handler(ctx, request)
	}
}

// callEndpoint returns the endpoint label of a gRPC method for the metrics.
func callEndpoint(method string) string {
	switch method {
	case ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName:
		return metrics.EnvoyRateLimit
	case authv3.Authorization_Check_FullMethodName:
		return metrics.EnvoyAuthorization
	}
	return ""
}

var (
	errWrongToken = status.Error(codes.Unauthenticated, "unknown token; send one of admin_tokens in the metadata, as authorization: Bearer TOKEN")
	errWrongOften = status.Error(codes.Unavailable, "too many wrong tokens from this address; try again later")
)

// authorizeCall returns an error for a gRPC caller without a valid token. Every role may make decisions.
func (a *access) authorizeCall(ctx context.Context) (context.Context, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if sent := md["authorization"]; len(sent) == 1 {
		scheme, secret, _ := strings.Cut(sent[0], " ")
		if strings.EqualFold(scheme, "Bearer") && len(secret) <= config.MaxToken {
			if c, ok := a.find(strings.TrimSpace(secret)); ok {
				return context.WithValue(ctx, callerKey{}, c), nil
			}
		}
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr.String()
	}
	if !a.wrong.Take("wrong "+network(from), 1).Allowed {
		return nil, errWrongOften
	}
	return nil, errWrongToken
}

// identifyCall is authorizeCall for an address where a caller needs no token. A token that is sent must be valid.
func (a *access) identifyCall(ctx context.Context) (context.Context, error) {
	if md, _ := metadata.FromIncomingContext(ctx); len(md["authorization"]) == 0 {
		return ctx, nil
	}
	return a.authorizeCall(ctx)
}

// mayRefund reports whether the caller of a gRPC call has the role that refunds tokens over HTTP, too.
func mayRefund(ctx context.Context) bool {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c.role >= httpapi.RoleOperate
}

// addGRPC adds the gRPC address, if the settings have one.
func (a *assembly) addGRPC(b *buckets, claims claimReader, access *access, watch *telemetry.Watch) error {
	c := a.config
	if c.GRPCListen == "" {
		return nil
	}
	s, err := a.openSocket("grpc-listen", c.GRPCListen, c.GRPCMaxConnections, c.GRPCTLS, grpcProtocols...)
	if err != nil {
		return err
	}
	l, err := a.grpcListener(s, b, claims, access, watch)
	if err != nil {
		return err
	}
	a.grpc = s.Addr()
	a.metrics.Add(metrics.AtListener(l.stats))
	a.add(a.newListenerComponent("grpc", l, 0))
	a.log.Info("gRPC services open", "address", s.Addr().String(), "token", c.RequiresToken(c.GRPCListen, c.GRPCTLS))
	return nil
}

// GRPCAddr returns the address of the gRPC services with the actual port, or nil.
func (s *Server) GRPCAddr() net.Addr { return s.grpc }
