// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/internal/pacer"
)

// Stream returns the interceptor of streams. Opening one takes from the limiter;
// with [ClientConfig.PerMessage] so does every message after the first. A message
// that may not be sent ends the stream.
func (c *ClientInterceptor) Stream() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		scope := c.scope(ctx, method, cc)
		paced := c.config.PerMessage && desc.ClientStreams
		if err := c.pace(ctx, method, cc); err != nil {
			return nil, err
		}
		ticket, err := c.pass(ctx, scope, false)
		if err != nil {
			return nil, err
		}
		if scope == nil && !paced {
			return open(ctx, desc, cc, method, opts...)
		}
		ctx, cancel := context.WithCancel(ctx)
		inner, err := open(ctx, desc, cc, method, opts...)
		if err != nil {
			cancel()
			settle(scope, ticket, err, nil)
			return nil, err
		}
		s := &clientStream{
			ClientStream: inner, c: c, cc: cc, method: method, scope: scope, ticket: ticket,
			paced: paced, once: !desc.ServerStreams, cancel: cancel,
		}
		context.AfterFunc(ctx, func() { s.settle(status.FromContextError(context.Canceled).Err(), nil) })
		return s, nil
	}
}

// A clientStream paces messages, and learns from the server's first answer.
type clientStream struct {
	grpc.ClientStream
	c      *ClientInterceptor
	cc     *grpc.ClientConn
	method string
	scope  *pacer.Pacer
	ticket pacer.Ticket
	paced  bool // every message
	once   bool // the server sends one message, and that is the end
	cancel context.CancelFunc

	sent    bool  // the first message
	failed  error // to send another
	settled sync.Once
}

// SendMsg sends a message when its turn has come.
func (s *clientStream) SendMsg(m any) error {
	if s.failed != nil {
		return s.failed
	}
	if s.paced && s.sent {
		if err := s.c.pace(s.Context(), s.method, s.cc); err != nil {
			s.failed = err
			s.cancel() // as gRPC's own SendMsg, which aborts a stream that fails
			return err
		}
	}
	s.sent = true
	return s.ClientStream.SendMsg(m)
}

// RecvMsg receives a message.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case errors.Is(err, io.EOF):
		s.settle(nil, s.Trailer())
	case err != nil || s.once:
		s.settle(err, s.Trailer())
	default:
		s.settle(nil, nil) // trailers come when the stream is over, which may take hours
		return nil
	}
	s.cancel()
	return err
}

// settle tells the scope of the first that is known of the stream.
func (s *clientStream) settle(err error, trailers metadata.MD) {
	s.settled.Do(func() { settle(s.scope, s.ticket, err, trailers) })
}
