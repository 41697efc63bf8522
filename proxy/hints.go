// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net/http"
	"net/textproto"
	"sync"
)

// maxHints bounds the informational responses before the final one. Without a bound, a server could hold a
// request with them forever.
const maxHints = 100

var errHints = fmt.Errorf("more than %d informational answers", maxHints)

// hints queues the informational (1xx) responses to a request. Until end returns, it owns the client's
// http.ResponseWriter. The zero value is empty.
type hints struct {
	sending sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	queue  []hint
	active bool // a goroutine is sending
	ended  bool // the final response has arrived
	count  int
}

type hint struct {
	status int
	header textproto.MIMEHeader
}

// queueHint queues an informational response. The goroutine that reads the server's connection calls it. Over
// HTTP/2 many requests share that connection, so queueHint must not wait for a client.
//
// It drops hints for HTTP/1.0 clients, which would treat them as the final response. It also drops 100 Continue:
// reading the body makes net/http send it.
func (e *exchange) queueHint(status int, header textproto.MIMEHeader) error {
	h := &e.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count++; h.count > maxHints {
		return errHints
	}
	if h.ended || status == http.StatusContinue || !e.in.ProtoAtLeast(1, 1) {
		return nil
	}
	h.queue = append(h.queue, hint{status, header})
	if !h.active {
		h.active = true
		h.sending.Go(func() {
			for next, ok := h.next(); ok; next, ok = h.next() {
				e.sendHint(next)
			}
		})
	}
	return nil
}

func (h *hints) next() (hint, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active = len(h.queue) > 0; !h.active {
		return hint{}, false
	}
	first := h.queue[0]
	h.queue = h.queue[1:]
	return first, true
}

// end stops accepting hints and waits until the queued ones are sent.
func (h *hints) end() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.sending.Wait()
}

// sendHint sends one hint. mete's own fields are sent with the final response.
func (e *exchange) sendHint(one hint) {
	h := e.w.Header()
	own := h.Clone()
	clear(h)
	removeConnectionFields(http.Header(one.header), one.header["Connection"])
	for name, values := range one.header {
		if !isHop(name) && !isOwnField(own, name) {
			h[name] = values
		}
	}
	_ = e.sendWithDeadline(http.NewResponseController(e.w), func() error { // ignore a client that is gone
		e.w.WriteHeader(one.status)
		return nil
	})
	clear(h)
	for name, values := range own {
		h[name] = values
	}
}
