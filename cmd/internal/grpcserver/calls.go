// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// Prefixes of the methods that this package serves.
const (
	servicesOfGRPC = "/grpc."
	healthService  = "/grpc.health.v1.Health/"
)

var (
	errTooMany  = status.Error(codes.Unavailable, "too many calls in flight; try again soon")
	errInternal = status.Error(codes.Internal, "internal error; the log of the server has the details")
	errEnding   = status.Error(codes.Unavailable, "the server is stopping; connect to another one")
)

// enterCall bounds and authorizes a unary call, and turns its panic into an error. The bound does not apply to health
// checks.
func (s *Server) enterCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	defer s.recoverPanic(info.FullMethod, &err)
	if strings.HasPrefix(info.FullMethod, healthService) {
		return handler(ctx, request)
	}
	if p := peerOf(ctx); p != nil {
		p.begin()
		defer p.end()
	}
	defer s.inFlight.Add(-1)
	if s.inFlight.Add(1) > int64(s.config.MaxInFlight) {
		s.refused.Add(1)
		return nil, errTooMany
	}
	if ctx, err = s.authorize(ctx); err != nil {
		return nil, err
	}
	return handler(ctx, request)
}

// enterStream is enterCall for streams. Streams of the services of gRPC have no end of their own, so Shutdown ends them.
func (s *Server) enterStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer s.recoverPanic(info.FullMethod, &err)
	if p := peerOf(stream.Context()); p != nil {
		p.begin()
		defer p.end()
	}
	defer s.streams.Add(-1)
	if s.streams.Add(1) > maxLongStreams {
		s.refused.Add(1)
		return errTooMany
	}
	if !strings.HasPrefix(info.FullMethod, healthService) {
		ctx, err := s.authorize(stream.Context())
		if err != nil {
			return err
		}
		stream = &authorizedStream{stream, ctx}
	}
	if !strings.HasPrefix(info.FullMethod, servicesOfGRPC) {
		return handler(service, stream)
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }()
		defer s.recoverPanic(info.FullMethod, &err)
		err = handler(service, stream)
	}()
	select {
	case err := <-ended:
		return err
	case <-s.stopping:
		return errEnding // it ends the context of the stream, and so the handler
	}
}

type authorizedStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *authorizedStream) Context() context.Context { return s.ctx }

func (s *Server) authorize(ctx context.Context) (context.Context, error) {
	if s.config.Authorize == nil {
		return ctx, nil
	}
	return s.config.Authorize(ctx)
}

// recoverPanic sets err after a panic. gRPC itself would end the process.
func (s *Server) recoverPanic(method string, err *error) {
	if p := recover(); p != nil {
		s.config.Log.Error("panic in a gRPC call", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = errInternal
	}
}

// peerOf returns the other end of the connection of a call.
func peerOf(ctx context.Context) *Peer {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	own, _ := p.AuthInfo.(*Peer)
	return own
}
