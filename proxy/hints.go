// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"net/http"
	"net/textproto"
	"sync"
)

// mostHints is how many informational answers a server may give before its answer:
// without a bound it could hold a request with them for as long as it likes.
const mostHints = 100

var errHints = fmt.Errorf("more than %d informational answers", mostHints)

// hints are the informational answers (1xx) to a request that wait to be passed on.
// Until end returns, the client's http.ResponseWriter is theirs. The zero value has none.
type hints struct {
	sending sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	queue  []hint
	active bool // somebody sends them
	ended  bool // the answer itself has come
	count  int
}

type hint struct {
	status int
	header textproto.MIMEHeader
}

// inform is told of an informational answer by whoever reads the connection to the
// server. Over HTTP/2 many requests share that: it must not wait for a client. One of
// HTTP/1.0 would take it for the final answer. A 100 is not for us to pass on: the body
// is read because of it, and net/http then tells the client to go on.
func (e *exchange) inform(status int, header textproto.MIMEHeader) error {
	h := &e.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.count++; h.count > mostHints {
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
				e.hint(next)
			}
		})
	}
	return nil
}

// next is false where there is none now.
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

// end lets no more come, and waits for those that did to be sent.
func (h *hints) end() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.sending.Wait()
}

// hint sends one. Our own fields wait for the answer.
func (e *exchange) hint(one hint) {
	h := e.w.Header()
	own := h.Clone()
	clear(h)
	withoutNamed(http.Header(one.header), one.header["Connection"])
	for name, values := range one.header {
		if !isHop(name) && !isOurs(own, name) {
			h[name] = values
		}
	}
	_ = e.bounded(http.NewResponseController(e.w), func() error { // a client that has gone needs none
		e.w.WriteHeader(one.status)
		return nil
	})
	clear(h)
	for name, values := range own {
		h[name] = values
	}
}
