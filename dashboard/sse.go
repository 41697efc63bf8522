// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// MaxStreams bounds the streams that are open at once, of all viewers: each is a
	// page that somebody looks at, or one bucket there. More are answered with 503.
	MaxStreams = 200

	// streamPatience is how long a viewer may take to accept what is sent. One who is
	// slower is cut off: the page asks again by itself.
	streamPatience = 10 * time.Second
)

// streams are those that are open.
type streams struct {
	slots  chan struct{}
	ending chan struct{} // closed at the end
	once   *sync.Once
}

func newStreams() streams {
	return streams{make(chan struct{}, MaxStreams), make(chan struct{}), new(sync.Once)}
}

func (s *streams) close() { s.once.Do(func() { close(s.ending) }) }

// A stream is an answer that goes on (Server-Sent Events, HTML Living Standard §9.2).
// It is used by one goroutine.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	gone    <-chan struct{} // who asked
	ending  <-chan struct{} // the server
}

// openStream begins a stream. The caller ends it by release. Until something is sent, a
// problem can be answered instead.
func (h *Handler) openStream(w http.ResponseWriter, r *http.Request) (s *stream, release func(), err error) {
	select {
	case <-h.streams.ending:
		return nil, nil, refuse(http.StatusServiceUnavailable, "the server is ending")
	default:
	}
	select {
	case h.streams.slots <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "5")
		return nil, nil, refuse(http.StatusServiceUnavailable, "%d streams are open, and more may not be; close a page, or try again later", MaxStreams)
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold it back
	s = &stream{w, http.NewResponseController(w), r.Context().Done(), h.streams.ending}
	// The stream lives on when the time for requests is over. A writer that knows no
	// deadlines has none that it could miss.
	_ = s.control.SetReadDeadline(time.Time{})
	return s, func() {
		_ = s.control.SetWriteDeadline(time.Now().Add(streamPatience)) // for what the server writes at the end
		<-h.streams.slots
	}, nil
}

// send sends frames. An error means that nobody listens any more.
func (s *stream) send(frames ...[]byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamPatience))
	for _, f := range frames {
		if _, err := s.w.Write(f); err != nil {
			return fmt.Errorf("dashboard: stream: %w", err)
		}
	}
	if err := s.control.Flush(); err != nil {
		return fmt.Errorf("dashboard: stream: %w", err)
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream by it that has nothing to say, too
	return nil
}

// byeFrame says that the server ends.
var byeFrame = []byte("event: bye\ndata: {\"reason\":\"ending\"}\n\n")

// frame is one event. The id may be empty. What cannot be written as JSON is a mistake
// of this package.
func frame(event, id string, data any) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("dashboard: event %s: %w", event, err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", event)
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "data: %s\n\n", text) // JSON has no line breaks
	return b.Bytes(), nil
}
