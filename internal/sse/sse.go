// SPDX-License-Identifier: Apache-2.0

// Package sse sends Server-Sent Events (HTML Living Standard, section 9.2).
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

// writeTimeout bounds the time in which a client must accept an event. The server disconnects slower clients, and
// their pages reconnect.
const writeTimeout = 10 * time.Second

// Errors of [Streams.Open].
var (
	ErrFull   = errors.New("sse: too many streams are open")
	ErrEnding = errors.New("sse: the server is stopping")
)

// Streams counts open streams. It is safe for concurrent use.
type Streams struct {
	slots  chan struct{}
	ending chan struct{} // closed by Close
	once   sync.Once
}

// NewStreams returns Streams for up to most concurrent streams.
func NewStreams(most int) *Streams {
	return &Streams{slots: make(chan struct{}, most), ending: make(chan struct{})}
}

// Close ends all streams and rejects new ones.
func (s *Streams) Close() { s.once.Do(func() { close(s.ending) }) }

// A Stream is an open event stream. It is not safe for concurrent use.
type Stream struct {
	Gone   <-chan struct{} // closed when the client is gone
	Ending <-chan struct{} // closed when the server stops

	w       http.ResponseWriter
	control *http.ResponseController
}

// Open starts a stream. The caller must call release at the end. Before the first event, the caller can still
// write another response.
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
	header.Set("X-Accel-Buffering", "no") // disables buffering in nginx
	stream = &Stream{r.Context().Done(), s.ending, w, http.NewResponseController(w)}
	// The stream outlives the server's request timeout. A writer without deadlines has no timeout either.
	_ = stream.control.SetReadDeadline(time.Time{})
	return stream, func() {
		_ = stream.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // for the end of the response
		<-s.slots
	}, nil
}

// Send sends frames. An error means that the client is gone.
func (s *Stream) Send(frames ...[]byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	for _, f := range frames {
		if _, err := s.w.Write(f); err != nil {
			return fmt.Errorf("sse: send: %w", err)
		}
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("sse: send: %w", err)
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // otherwise HTTP/2 ends a stream without events
	return nil
}

// Bye is the frame that announces that the server stops.
var Bye = []byte("event: bye\ndata: {\"reason\":\"ending\"}\n\n")

// Frame formats one event. id may be empty. It returns an error if data cannot be encoded as JSON.
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
