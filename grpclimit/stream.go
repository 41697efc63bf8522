// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// A serverStream decides every message after the first.
type serverStream struct {
	grpc.ServerStream
	in     *Interceptor
	method string

	received bool  // the first message, paid for by the call
	denied   error // ends the stream for good

	mu   sync.Mutex // a handler may return while it still receives
	said metadata.MD
}

// RecvMsg receives a message, and waits until its turn has come: meanwhile flow
// control holds the client back.
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
	said, err := s.in.admit(s.Context(), s.method)
	s.say(said)
	s.denied = err
	return err
}

// say keeps the trailers of the latest decision.
func (s *serverStream) say(said metadata.MD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = said
}

// sayTrailers sends them, once: a trailer that is set twice has two values.
func (s *serverStream) sayTrailers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.said) > 0 {
		s.ServerStream.SetTrailer(s.said)
	}
}
