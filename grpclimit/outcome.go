// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

// A call is an admitted call that holds slots, or with limits that depend on its response (charge_on, or a cost in it). All work at
// the end of a call belongs here. end is called exactly once, also if the handler panics or the client cancels.
type call struct {
	reservation *mete.Reservation

	mu      sync.Mutex // guards the fields below: a stream may send and set metadata at the same time
	begun   bool       // something was sent
	sent    metadata.MD
	bytes   int64
	unsized bool // a message has no protobuf size
}

// newCall returns nil if r neither awaits a response nor holds slots. It renews the slots until the end of the call.
func newCall(r *mete.Reservation) *call {
	if !r.AwaitsResponse() && r.Slots == nil {
		return nil
	}
	r.Slots.KeepAlive()
	return &call{reservation: r}
}

// slot returns the ID of the slots that c holds, or zero.
func (c *call) slot() bucket.SlotID {
	if c == nil {
		return bucket.SlotID{}
	}
	return c.reservation.Slots.ID()
}

// runUnary calls a handler and settles the call before its response is sent.
func (c *call) runUnary(ctx context.Context, req any, handler grpc.UnaryHandler) (reply any, err error) {
	panicked := true
	defer func() { c.end(ctx, err, panicked) }()
	reply, err = handler(c.observe(ctx), req)
	if panicked = false; err == nil {
		c.countMessage(reply)
	}
	return reply, err
}

// runStream calls a handler and settles the call before its status is sent.
func (c *call) runStream(ss grpc.ServerStream, handler func(grpc.ServerStream) error) (err error) {
	if c == nil {
		return handler(ss)
	}
	panicked := true
	defer func() { c.end(ss.Context(), err, panicked) }()
	err = handler(c.observeStream(ss))
	panicked = false
	return err
}

// end settles the call by its status. The outcome is unknown if the client canceled, or its deadline passed, before
// anything was sent. No client saves tokens by hanging up.
func (c *call) end(ctx context.Context, err error, panicked bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	res := policy.Response{Header: c.field, Bytes: c.bytes, Ended: true}
	if c.unsized {
		res.Bytes = -1
	}
	if ctx.Err() == nil || c.begun {
		res.GRPC = policy.GRPCCode(uint32(codeOf(err, panicked)))
	}
	c.mu.Unlock()
	c.reservation.FinishSoon(ctx, res)
	c.reservation.Slots.ReleaseSoon(ctx)
}

// codeOf returns the code that the client gets for the error of a handler.
func codeOf(err error, panicked bool) codes.Code {
	if panicked {
		return codes.Internal
	}
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}

// field returns a value of the metadata that the handler has sent. end calls it after the handler.
func (c *call) field(name string) (string, bool) {
	values := c.sent.Get(name)
	if len(values) != 1 || strings.HasSuffix(name, "-bin") {
		return "", false
	}
	return values[0], true
}

func (c *call) addMetadata(md metadata.MD) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = metadata.Join(c.sent, md)
}

func (c *call) countMessage(m any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	message, ok := m.(proto.Message)
	if c.unsized = c.unsized || !ok; ok {
		c.bytes += int64(proto.Size(message))
	}
}

func (c *call) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
}

// observe returns a context with which c sees the metadata of grpc.SetHeader and grpc.SetTrailer.
func (c *call) observe(ctx context.Context) context.Context {
	if stream := grpc.ServerTransportStreamFromContext(ctx); stream != nil {
		return grpc.NewContextWithServerTransportStream(ctx, observedTransport{stream, c})
	}
	return ctx
}

type observedTransport struct {
	grpc.ServerTransportStream
	call *call
}

func (s observedTransport) SetHeader(md metadata.MD) error {
	s.call.addMetadata(md)
	return s.ServerTransportStream.SetHeader(md)
}

func (s observedTransport) SendHeader(md metadata.MD) error {
	s.call.addMetadata(md)
	s.call.begin()
	return s.ServerTransportStream.SendHeader(md)
}

func (s observedTransport) SetTrailer(md metadata.MD) error {
	s.call.addMetadata(md)
	return s.ServerTransportStream.SetTrailer(md)
}

// An observedStream records the metadata and the messages for its call.
type observedStream struct {
	grpc.ServerStream
	call *call
	ctx  context.Context
}

func (c *call) observeStream(ss grpc.ServerStream) grpc.ServerStream {
	return &observedStream{ss, c, c.observe(ss.Context())}
}

func (s *observedStream) Context() context.Context { return s.ctx }

func (s *observedStream) SetHeader(md metadata.MD) error {
	s.call.addMetadata(md)
	return s.ServerStream.SetHeader(md)
}

func (s *observedStream) SendHeader(md metadata.MD) error {
	s.call.addMetadata(md)
	s.call.begin()
	return s.ServerStream.SendHeader(md)
}

func (s *observedStream) SetTrailer(md metadata.MD) {
	s.call.addMetadata(md)
	s.ServerStream.SetTrailer(md)
}

func (s *observedStream) SendMsg(m any) error {
	s.call.begin()
	err := s.ServerStream.SendMsg(m)
	if err == nil {
		s.call.countMessage(m)
	}
	return err
}
