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

// errTaken ends the work of ReverseProxy: the answer is on its way without it.
var errTaken = errors.New("the answer has been passed on")

// take begins to pass on the answer of the server. ReverseProxy sends its status and body.
func (e *exchange) take(res *http.Response) error {
	if res.StatusCode == http.StatusSwitchingProtocols {
		e.upgrade(res)
		return errTaken
	}
	e.begin()
	e.takeHeader(res)
	withoutOurs(res.Trailer, e.w.Header())
	if res.Body != http.NoBody {
		e.answer = answerBody{from: res.Body, exchange: e, trailer: &res.Trailer, left: res.ContentLength, watch: e.watchStall()}
		res.Body = &e.answer
		res.ContentLength = max(res.ContentLength, 0) // answerWriter flushes: ReverseProxy needs no timer to do it
	}
	return nil
}

// takeHeader makes the header of res that of the answer, together with what is set
// there already: rate limit fields of ours replace those of the same name, and why a
// request was denied is ours to say.
func (e *exchange) takeHeader(res *http.Response) {
	h := e.w.Header()
	withoutNamed(res.Header, res.Header["Connection"])
	for name, values := range res.Header {
		switch {
		case isHop(name) || isOurs(h, name):
		case len(h[name]) > 0:
			h[name] = append(h[name], values...)
		default:
			h[name] = values
		}
	}
	if _, ok := res.Header["Content-Type"]; !ok {
		h["Content-Type"] = nil // net/http must not guess what the upstream does not say
	}
	res.Header = nil // ReverseProxy would add it once more
}

// isOurs reports whether a field of the upstream, by its canonical name, says what only
// own, the header of the answer, is to say.
func isOurs(own http.Header, name string) bool {
	return strings.Contains(name, "Ratelimit") && (name == "X-Ratelimit-Reason" || len(own[name]) > 0)
}

// withoutOurs removes such fields from a trailer.
func withoutOurs(trailer, own http.Header) {
	for name := range trailer {
		if isOurs(own, name) {
			delete(trailer, name)
		}
	}
}

// An answerBody is the body of a server's answer. It is read by the goroutine that serves
// the request.
type answerBody struct {
	from     io.ReadCloser // nil: the answer has none
	exchange *exchange
	trailer  *http.Header
	left     int64 // below 0: not known
	ended    bool  // it has been read to its end
	closed   bool
	watch    stallWatch
}

// Read implements [io.Reader]. An answer that stands still for too long ends.
func (b *answerBody) Read(p []byte) (int, error) {
	b.watch.start()
	n, err := b.from.Read(p)
	b.watch.stop() // the client may take its own time
	b.left -= int64(n)
	switch {
	case err == io.EOF:
		b.ended = true
	case err != nil:
		b.exchange.brokeOff(err)
	}
	return n, err
}

// Close implements [io.Closer]. It fills in the trailers.
func (b *answerBody) Close() error {
	b.closed = true
	err := b.from.Close()
	withoutOurs(*b.trailer, b.exchange.w.Header())
	return err
}

// An answerWriter is the client for ReverseProxy. Before the answer of the server has
// begun, ReverseProxy writes informational answers, which hints sends in its place.
type answerWriter struct{ *exchange }

// Header implements [http.ResponseWriter].
func (a answerWriter) Header() http.Header {
	if a.answered {
		return a.w.Header()
	}
	if a.discard == nil {
		a.discard = make(http.Header)
	}
	return a.discard
}

// WriteHeader implements [http.ResponseWriter]. The header does not wait for a body that
// may take its time.
func (a answerWriter) WriteHeader(status int) {
	if !a.answered {
		return
	}
	a.w.WriteHeader(status)
	if b := &a.answer; b.from != nil && (b.left < 0 || b.left > copyBytes) {
		_ = a.send(nil, true) // where the client has gone, so will the first piece of the body
	}
}

// Write implements [io.Writer]. A piece of the body is sent at once where more is to come.
func (a answerWriter) Write(piece []byte) (int, error) {
	if err := a.send(piece, !a.answer.ended && a.answer.left != 0); err != nil {
		return 0, err
	}
	return len(piece), nil
}

// FlushError is for [http.ResponseController]. Only an answer with a trailer needs it: its
// short body must not be given a length. Write has flushed all else.
func (a answerWriter) FlushError() error {
	if !a.answer.closed {
		return nil
	}
	return a.send(nil, true)
}

// send sends a piece of the body to the client, and what net/http holds back of it.
func (a answerWriter) send(piece []byte, flush bool) error {
	control := http.NewResponseController(a.w)
	return a.bounded(control, func() error {
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

// bounded does what sends something to the client, which has so long to take it. The
// first piece is no other: a client may have asked for many answers before, and read
// none of them.
func (e *exchange) bounded(control *http.ResponseController, send func() error) error {
	most := e.proxy.config.ClientTimeout
	set := most > 0 && control.SetWriteDeadline(time.Now().Add(most)) == nil
	err := send()
	if err == nil && set {
		_ = control.SetWriteDeadline(time.Time{})
	}
	return err
}

// brokeOff tells of an answer that ended before its time, if that is not the client's
// doing.
func (e *exchange) brokeOff(err error) {
	if e.in.Context().Err() == nil && e.body.failure() == nil {
		e.proxy.config.OnError(e.out, errors.Join(err, stallOf(e.out.Context())))
	}
}

// stallOf is errStalled, if that is why ctx has ended.
func stallOf(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
		return cause
	}
	return nil
}

// A stallWatch ends a request whose answer stands still while it is read. The zero
// value does not.
type stallWatch struct {
	timer *time.Timer
	most  time.Duration
}

func (e *exchange) watchStall() stallWatch {
	if e.cancel == nil {
		return stallWatch{}
	}
	most := e.upstream.stall
	timer := time.AfterFunc(most, func() { e.cancel(errStalled) })
	timer.Stop()
	return stallWatch{timer, most}
}

// start is called before each read.
func (s stallWatch) start() {
	if s.timer != nil {
		s.timer.Reset(s.most)
	}
}

// stop is called after it.
func (s stallWatch) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
