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

// Stream returns the interceptor of streams. Opening a stream takes from the limiter. With
// [ClientConfig.PerMessage], so does every message after the first. A message that may not be sent ends the
// stream.
func (c *ClientInterceptor) Stream() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		scope := c.scope(ctx, method, cc)
		paced := c.config.PerMessage && desc.ClientStreams
		if err := c.pace(ctx, method, cc); err != nil {
			return nil, err
		}
		ticket, err := c.waitTurn(ctx, scope, false)
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

// A clientStream paces messages and reads the server's limits from its first response.
type clientStream struct {
	grpc.ClientStream
	c      *ClientInterceptor
	cc     *grpc.ClientConn
	method string
	scope  *pacer.Pacer
	ticket pacer.Ticket
	paced  bool // every message is paced
	once   bool // the server sends only one message
	cancel context.CancelFunc

	sent    bool  // the first message was sent
	failed  error // error of a message that was not sent
	settled sync.Once
}

// SendMsg sends a message after its wait.
func (s *clientStream) SendMsg(m any) error {
	if s.failed != nil {
		return s.failed
	}
	if s.paced && s.sent {
		if err := s.c.pace(s.Context(), s.method, s.cc); err != nil {
			s.failed = err
			s.cancel() // like gRPC's SendMsg, abort a failed stream
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
		s.settle(nil, nil) // do not wait for the trailers at the end of the stream
		return nil
	}
	s.cancel()
	return err
}

func (s *clientStream) settle(err error, trailers metadata.MD) {
	s.settled.Do(func() { settle(s.scope, s.ticket, err, trailers) })
}
