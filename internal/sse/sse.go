// SPDX-License-Identifier: Apache-2.0

// Package sse answers with Server-Sent Events (HTML Living Standard §9.2).
package sse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// patience is the time that a client has to accept an event. The server cuts off a slower
// client, whose page then connects again.
const patience = 10 * time.Second

// Reasons why a stream does not open.
var (
	ErrFull   = errors.New("sse: too many streams are open")
	ErrEnding = errors.New("sse: the server is stopping")
)

// Streams are open streams. They are safe for concurrent use.
type Streams struct {
	slots  chan struct{}
	ending chan struct{} // closed at the end
	once   sync.Once
}

// NewStreams returns room for so many streams at a time.
func NewStreams(most int) *Streams {
	return &Streams{slots: make(chan struct{}, most), ending: make(chan struct{})}
}

// Close ends all streams, and refuses new ones.
func (s *Streams) Close() { s.once.Do(func() { close(s.ending) }) }

// A Stream is an answer that goes on. One goroutine uses it.
type Stream struct {
	Gone   <-chan struct{} // closed when the client is gone
	Ending <-chan struct{} // closed when the server stops

	w       http.ResponseWriter
	control *http.ResponseController
}

// Open begins a stream. The caller ends it by release. Until the first event, the caller can
// write another answer instead.
func (s *Streams) Open(w http.ResponseWriter, r *http.Request) (stream *Stream, release func(), err error) {
	select {
	case <-s.ending:
		return nil, nil, ErrEnding
	default:
	}
	select {
	case s.slots <- struct{}{}:
	default:
		return nil, nil, ErrFull
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would keep events back
	stream = &Stream{r.Context().Done(), s.ending, w, http.NewResponseController(w)}
	// The stream outlives the server's timeout for requests. A writer without deadlines has
	// no timeout either.
	_ = stream.control.SetReadDeadline(time.Time{})
	return stream, func() {
		_ = stream.control.SetWriteDeadline(time.Now().Add(patience)) // for the end of the answer
		<-s.slots
	}, nil
}

// Send sends frames. An error means that the client is gone.
func (s *Stream) Send(frames ...[]byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(patience))
	for _, f := range frames {
		if _, err := s.w.Write(f); err != nil {
			return fmt.Errorf("sse: send: %w", err)
		}
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("sse: send: %w", err)
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // else HTTP/2 ends a stream without events
	return nil
}

// Bye is the frame that says that the server stops.
var Bye = []byte("event: bye\ndata: {\"reason\":\"ending\"}\n\n")

// Frame formats one event. The ID may be empty. An error means that JSON cannot have data.
func Frame(event, id string, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("sse: event %s: %w", event, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", event)
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "data: %s\n\n", text) // JSON has no line breaks
	return b.Bytes(), nil
}
