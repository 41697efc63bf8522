// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A requestBody is the request body that is sent to the upstream. Each read from the client has a deadline until
// the response begins. After that, both sides may be silent, as in bidirectional streams. The zero value is an
// empty body.
type requestBody struct {
	from     io.Reader
	closer   io.Closer
	control  *http.ResponseController
	timeout  time.Duration // negative: none
	received http.Header   // the client's trailer, complete at the end of the body
	trailer  http.Header   // the part of came that is forwarded
	read     atomic.Bool   // a read has begun
	closed   atomic.Bool   // no more reads are allowed

	reading  sync.Mutex // held during a read
	mu       sync.Mutex // guards the fields below
	deadline bool       // a read deadline is set
	free     bool       // no more deadlines are set
	ended    bool       // read to the end
	sent     time.Time  // when ended was set
	err      error      // the client's error that ended the body early
}

// prepareBody sets up e.body from the client's request. Call it after all other changes to the request.
func (e *exchange) prepareBody(most int64) {
	b := &e.body
	b.control = http.NewResponseController(e.w)
	b.from, b.closer, b.timeout = e.in.Body, e.in.Body, e.proxy.config.ClientTimeout
	if most > 0 {
		// Do not pass e.w: MaxBytesReader would write to the response header concurrently with the response.
		b.from = http.MaxBytesReader(nil, e.in.Body, most)
	}
	if e.in.ProtoMajor == 1 {
		_ = b.control.EnableFullDuplex() // otherwise net/http reads the whole body before it responds
	}
	b.received, b.trailer = e.in.Trailer, e.proxy.allowedTrailer(e.in.Trailer)
}

// allowedTrailer returns the announced trailer fields that may be forwarded. It removes hop-by-hop fields and
// fields that identify the client or delimit the message. Servers that merge trailers into the header would trust
// them (RFC 9110, section 6.5.1). Trailers that are not announced are not forwarded.
func (p *Proxy) allowedTrailer(announced http.Header) http.Header {
	var known http.Header
	for name := range announced {
		switch name {
		case "Host", "Authorization", "Cookie":
			continue
		}
		if !p.forwards(name, false) {
			continue
		}
		if known == nil {
			known = make(http.Header, len(announced))
		}
		known[name] = nil
	}
	return known
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	b.arm()
	n, err := b.from.Read(p)
	if err == io.EOF {
		for name := range b.trailer {
			b.trailer[name] = b.received[name]
		}
	}
	if err != nil {
		b.stop(err)
	}
	return n, err
}

// Close implements [io.Closer]. The client's body stays open for a retry; net/http closes it at the end of the
// request.
func (b *requestBody) Close() error {
	if b.read.Load() {
		b.closed.Store(true)
	}
	return nil
}

func (b *requestBody) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timeout > 0 && !b.free {
		b.deadline = b.control.SetReadDeadline(time.Now().Add(b.timeout)) == nil
	}
}

func (b *requestBody) stop(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = true
	switch {
	case errors.Is(err, io.EOF):
		b.ended, b.sent = true, time.Now()
		b.disarm()
	case b.err == nil && !b.closed.Load():
		b.err = err
	}
}

// release removes the deadline because the response has begun.
func (b *requestBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = true
	b.disarm()
}

// disarm removes the deadline. The caller holds mu.
func (b *requestBody) disarm() {
	if b.deadline && b.err == nil {
		_ = b.control.SetReadDeadline(time.Time{})
		b.deadline = false
	}
}

var longAgo = time.Unix(1, 0)

// end forbids further reads. net/http then reads the rest of the body, up to a bound, and the client gets one
// more timeout for it. A concurrent read must finish first: net/http would end that read and the deadline with
// it.
func (b *requestBody) end() {
	b.closed.Store(true)
	b.mu.Lock()
	b.free = true
	left := b.control != nil && !b.ended && b.err == nil
	b.mu.Unlock()
	if !left {
		return
	}
	if b.control.SetReadDeadline(longAgo) == nil {
		b.reading.Lock()
		defer b.reading.Unlock()
	}
	var deadline time.Time
	if b.timeout > 0 {
		deadline = time.Now().Add(b.timeout)
	}
	_ = b.control.SetReadDeadline(deadline)
}

// sentAt returns the time at which the body was read to its end, or the zero time if there is no body. It returns
// false while part of the body is unread.
func (b *requestBody) sentAt() (at time.Time, ok bool) {
	if b.from == nil {
		return time.Time{}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent, b.ended
}

func (b *requestBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func isStall(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
