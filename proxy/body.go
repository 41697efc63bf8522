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

// A requestBody is the body of a request on its way. The client has so long for each
// piece of it, until the answer has begun: after that, both may be silent, as those
// are who stream in both directions. The zero value is no body.
type requestBody struct {
	from    io.Reader
	closer  io.Closer
	control *http.ResponseController
	timeout time.Duration // below zero: none
	came    http.Header   // the trailer of the client, which is there when the body has ended
	trailer http.Header   // what is sent on of it
	read    atomic.Bool   // somebody has begun to read it
	closed  atomic.Bool   // nobody may read it any more

	reading  sync.Mutex // held while it is read
	mu       sync.Mutex // guards the fields below
	deadline bool       // one is set
	free     bool       // none is to be set any more
	ended    bool       // it has been read to its end
	sent     time.Time  // when that was
	err      error      // why it could not be read on: the client's doing
}

// takeBody sends on the body of the client's request. It must be the last that is done
// to the request.
func (e *exchange) takeBody(most int64) {
	b := &e.body
	b.control = http.NewResponseController(e.w)
	b.from, b.closer, b.timeout = e.in.Body, e.in.Body, e.proxy.config.ClientTimeout
	if most > 0 {
		// It must not be given e.w: it would write to its header while the answer is.
		b.from = http.MaxBytesReader(nil, e.in.Body, most)
	}
	if e.in.ProtoMajor == 1 {
		_ = b.control.EnableFullDuplex() // else net/http reads the rest before it begins to answer
	}
	b.came, b.trailer = e.in.Trailer, e.proxy.knownTrailer(e.in.Trailer)
}

// knownTrailer is what of a trailer that is announced may be sent on: nothing that is
// for this hop only, nor what says who somebody is or where a message ends, which
// servers that make one header of both would believe (RFC 9110, 6.5.1). What is not
// announced is not sent.
func (p *Proxy) knownTrailer(announced http.Header) http.Header {
	var known http.Header
	for name := range announced {
		switch name {
		case "Host", "Authorization", "Cookie":
			continue
		}
		if !p.sendsOn(name, false) {
			continue
		}
		if known == nil {
			known = make(http.Header, len(announced))
		}
		known[name] = nil
	}
	return known
}

// Read implements [io.Reader].
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
			b.trailer[name] = b.came[name]
		}
	}
	if err != nil {
		b.stop(err)
	}
	return n, err
}

// Close implements [io.Closer]. The client's body stays open, for another try: net/http
// closes it when all is done.
func (b *requestBody) Close() error {
	if b.read.Load() {
		b.closed.Store(true)
	}
	return nil
}

// arm gives the client its time for the next piece.
func (b *requestBody) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timeout > 0 && !b.free {
		b.deadline = b.control.SetReadDeadline(time.Now().Add(b.timeout)) == nil
	}
}

// stop notes how reading has ended.
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

// release lifts the bound: the answer has begun.
func (b *requestBody) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = true
	b.disarm()
}

// disarm is for who holds mu.
func (b *requestBody) disarm() {
	if b.deadline && b.err == nil {
		_ = b.control.SetReadDeadline(time.Time{})
		b.deadline = false
	}
}

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// end lets nobody read any more. What is left, net/http reads, up to a bound: for that
// the client has its time once more. Whoever reads yet has to be through: net/http would
// end that read, and the deadline with it.
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

// sentAt is when the body has been read to its end, the zero time if there is none. It
// is false where it has not been.
func (b *requestBody) sentAt() (at time.Time, ok bool) {
	if b.from == nil {
		return time.Time{}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent, b.ended
}

// failure is why the body could not be read on, nil if it could.
func (b *requestBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// isStall reports whether err is that of a client which has let its time pass.
func isStall(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
