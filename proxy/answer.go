// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// errResponseForwarded ends the work of ReverseProxy: the exchange has forwarded the response itself.
var errResponseForwarded = errors.New("the response has been forwarded")

// forwardResponse starts to forward the server's response. ReverseProxy then sends the status and the body.
func (e *exchange) forwardResponse(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		e.upgrade(res)
		return errResponseForwarded
	}
	e.beginResponse()
	e.copyResponseHeader(res)
	removeOwnFields(res.Trailer, e.w.Header())
	if res.Body != http.NoBody {
		e.response = responseBody{from: res.Body, exchange: e, trailer: &res.Trailer, left: res.ContentLength, watch: e.newStallWatch()}
		res.Body = &e.response
		res.ContentLength = max(res.ContentLength, 0) // responseWriter flushes, so ReverseProxy needs no timer
	}
	return nil
}

// copyResponseHeader merges the header of res into the response header. Rate limit fields that mete has already
// set replace upstream fields of the same name, and only mete reports the reason for a denial.
func (e *exchange) copyResponseHeader(res *http.Response) {
	h := e.w.Header()
	removeConnectionFields(res.Header, res.Header["Connection"])
	for name, values := range res.Header {
		switch {
		case isHop(name) || isOwnField(h, name):
		case len(h[name]) > 0:
			h[name] = append(h[name], values...)
		default:
			h[name] = values
		}
	}
	if _, ok := res.Header["Content-Type"]; !ok {
		h["Content-Type"] = nil // keeps net/http from guessing the type
	}
	res.Header = nil // ReverseProxy would add the fields again
}

// isOwnField reports whether mete owns the upstream's field with this canonical name. The header own holds the
// fields that mete has already set.
func isOwnField(own http.Header, name string) bool {
	return strings.Contains(name, "Ratelimit") && (name == "X-Ratelimit-Reason" || len(own[name]) > 0)
}

func removeOwnFields(trailer, own http.Header) {
	for name := range trailer {
		if isOwnField(own, name) {
			delete(trailer, name)
		}
	}
}

// A responseBody is the body of a server's response. The goroutine that serves the request reads it.
type responseBody struct {
	from     io.ReadCloser // nil: the response has no body
	exchange *exchange
	trailer  *http.Header
	left     int64 // negative if unknown
	ended    bool  // read to the end
	closed   bool
	watch    stallWatch
}

// Read implements [io.Reader]. It ends a response that stalls for too long.
func (b *responseBody) Read(p []byte) (int, error) {
	b.watch.start()
	n, err := b.from.Read(p)
	b.watch.stop() // the upstream is not responsible while the client reads
	b.left -= int64(n)
	switch {
	case err == io.EOF:
		b.ended = true
	case err != nil:
		b.exchange.reportBrokenResponse(err)
	}
	return n, err
}

// Close implements [io.Closer]. It fills in the trailers.
func (b *responseBody) Close() error {
	b.closed = true
	err := b.from.Close()
	removeOwnFields(*b.trailer, b.exchange.w.Header())
	return err
}

// A responseWriter is the client's response writer as ReverseProxy sees it. ReverseProxy writes informational
// responses before the server's response has begun; hints sends them instead.
type responseWriter struct{ *exchange }

func (a responseWriter) Header() http.Header {
	if a.responding {
		return a.w.Header()
	}
	if a.discard == nil {
		a.discard = make(http.Header)
	}
	return a.discard
}

// WriteHeader implements [http.ResponseWriter]. It sends the header immediately if the body may take time.
func (a responseWriter) WriteHeader(status int) {
	if !a.responding {
		return
	}
	a.w.WriteHeader(status)
	if b := &a.response; b.from != nil && (b.left < 0 || b.left > copyBytes) {
		_ = a.send(nil, true) // if the client is gone, the next write fails too
	}
}

// Write implements [io.Writer]. It flushes each piece of the body while more is to come.
func (a responseWriter) Write(piece []byte) (int, error) {
	if err := a.send(piece, !a.response.ended && a.response.left != 0); err != nil {
		return 0, err
	}
	return len(piece), nil
}

// FlushError implements the method for [http.ResponseController]. Only a response with a trailer needs it,
// because its short body must not get a Content-Length. Write has flushed everything else.
func (a responseWriter) FlushError() error {
	if !a.response.closed {
		return nil
	}
	return a.send(nil, true)
}

// send writes a piece of the body to the client and, if flush is true, flushes what net/http has buffered.
func (a responseWriter) send(piece []byte, flush bool) error {
	control := http.NewResponseController(a.w)
	return a.sendWithDeadline(control, func() error {
		if len(piece) > 0 {
			if _, err := a.w.Write(piece); err != nil {
				return err
			}
		}
		if !flush {
			return nil
		}
		if err := control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		return nil
	})
}

// sendWithDeadline calls send with Config.ClientTimeout as the client's write deadline. The first piece needs a
// deadline too: a client can pipeline many requests and read none of the responses.
func (e *exchange) sendWithDeadline(control *http.ResponseController, send func() error) error {
	most := e.proxy.config.ClientTimeout
	set := most > 0 && control.SetWriteDeadline(time.Now().Add(most)) == nil
	err := send()
	if err == nil && set {
		_ = control.SetWriteDeadline(time.Time{})
	}
	return err
}

// reportBrokenResponse passes err to Config.OnError, unless the client caused the response to break.
func (e *exchange) reportBrokenResponse(err error) {
	if e.in.Context().Err() == nil && e.body.failure() == nil {
		e.proxy.config.OnError(e.out, errors.Join(err, stallCause(e.out.Context())))
	}
}

// stallCause returns errStalled if ctx was canceled because the response stalled, and nil otherwise.
func stallCause(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return cause
	}
	return nil
}

// A stallWatch cancels a request if a read of the response stalls. The zero value does nothing.
type stallWatch struct {
	timer *time.Timer
	limit time.Duration
}

func (e *exchange) newStallWatch() stallWatch {
	if e.cancel == nil {
		return stallWatch{}
	}
	most := e.upstream.stall
	timer := time.AfterFunc(most, func() { e.cancel(errStalled) })
	timer.Stop()
	return stallWatch{timer, most}
}

func (s stallWatch) start() {
	if s.timer != nil {
		s.timer.Reset(s.limit)
	}
}

func (s stallWatch) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
