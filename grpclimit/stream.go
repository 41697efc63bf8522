// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/metehq/mete/bucket"
)

type serverStream struct {
	grpc.ServerStream
	in     *Interceptor
	method string
	slot   bucket.SlotID // of the call; zero if it holds no slots

	received bool  // the first message, which the call has paid for
	denied   error // the error that ended the stream

	mu       sync.Mutex // a handler may return while it still receives
	trailers metadata.MD
}

// RecvMsg receives a message and waits for its turn. During the wait, flow control slows down the client.
func (s *serverStream) RecvMsg(m any) error {
	if s.denied != nil {
		return s.denied
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if !s.received {
		s.received = true
		return nil
	}
	said, err := s.in.admitMessage(s.Context(), s.method, s.slot)
	s.keepTrailers(said)
	s.denied = err
	return err
}

func (s *serverStream) keepTrailers(said metadata.MD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trailers = said
}

// sendTrailers sets the trailers once, because setting a trailer twice gives it two values.
func (s *serverStream) sendTrailers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.trailers) > 0 {
		s.ServerStream.SetTrailer(s.trailers)
	}
}
