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

// copyBytes is the size [io.Copy] uses.
const copyBytes = 32 << 10

// answer passes the answer of the server on.
func (e *exchange) answer(res *http.Response) {
	e.begin()
	h := e.w.Header()
	e.takeHeader(res)
	announced := len(res.Trailer)
	for name := range res.Trailer {
		h["Trailer"] = append(h["Trailer"], name)
	}
	e.w.WriteHeader(res.StatusCode)
	if err := e.copyBody(res); err != nil {
		res.Body.Close()
		if e.in.Context().Value(http.ServerContextKey) != nil {
			panic(http.ErrAbortHandler) // an answer that breaks off breaks off for the client, too
		}
		return
	}
	res.Body.Close() // which is what fills in the trailers
	if len(res.Trailer) == 0 {
		return
	}
	e.flush(http.NewResponseController(e.w)) // a short body must not be given a length: it would have no trailers
	for name, values := range res.Trailer {
		if announced != len(res.Trailer) {
			name = http.TrailerPrefix + name
		}
		h[name] = append(h[name], values...)
	}
}

// takeHeader makes the header of res that of the answer, together with what is set
// there already: rate limit fields of ours replace those of the same name, and why a
// request was denied is ours to say.
func (e *exchange) takeHeader(res *http.Response) {
	h := e.w.Header()
	withoutNamed(res.Header, res.Header["Connection"])
	for name, values := range res.Header {
		switch {
		case isHop(name) || name == "X-Ratelimit-Reason":
		case strings.Contains(name, "Ratelimit") && hasField(h, name):
		case len(h[name]) > 0:
			h[name] = append(h[name], values...)
		default:
			h[name] = values
		}
	}
	if _, ok := res.Header["Content-Type"]; !ok {
		h["Content-Type"] = nil // net/http must not guess what the upstream does not say
	}
}

// hasField reports whether h has a field, in any spelling.
func hasField(h http.Header, name string) bool {
	for own := range h {
		if strings.EqualFold(own, name) {
			return true
		}
	}
	return false
}

// copyBody passes the body on as it comes. The error is that of whoever broke off.
func (e *exchange) copyBody(res *http.Response) error {
	if res.Body == http.NoBody {
		return nil
	}
	space := e.proxy.buffers.Get().(*[copyBytes]byte)
	defer e.proxy.buffers.Put(space)
	control := http.NewResponseController(e.w)
	left := res.ContentLength // below 0: not known
	if left < 0 || left > copyBytes {
		e.flush(control) // the header must not wait for a body that may take its time
	}
	watch := e.watchStall()
	defer watch.end()
	for piece := 0; ; piece++ {
		n, err := res.Body.Read(space[:])
		watch.moved()
		if n > 0 {
			left -= int64(n)
			if e.write(control, space[:n], piece > 0 || e.in.ProtoMajor > 1, err == nil && left != 0) != nil {
				return context.Canceled // the client has gone
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			e.brokeOff(err)
			return err
		}
	}
}

// write sends a piece of the body, at once where more is to come. A client has so long
// to take it, where it is not the first one of an answer by HTTP/1, which goes into the
// buffers of its connection. (With HTTP/2 a client can say that it takes nothing.)
func (e *exchange) write(control *http.ResponseController, piece []byte, bounded, more bool) error {
	bounded = bounded && e.proxy.config.ClientTimeout > 0
	if bounded {
		bounded = control.SetWriteDeadline(time.Now().Add(e.proxy.config.ClientTimeout)) == nil
	}
	_, err := e.w.Write(piece)
	if err == nil && more {
		err = e.flush(control)
	}
	if err == nil && bounded {
		_ = control.SetWriteDeadline(time.Time{})
	}
	return err
}

// flush sends what is buffered, if w can.
func (e *exchange) flush(control *http.ResponseController) error {
	if err := control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
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

// A stallWatch ends a request whose answer stands still. The zero value does not.
type stallWatch struct {
	timer *time.Timer
	most  time.Duration
}

func (e *exchange) watchStall() stallWatch {
	if e.cancel == nil {
		return stallWatch{}
	}
	most := e.upstream.stall
	return stallWatch{time.AfterFunc(most, func() { e.cancel(errStalled) }), most}
}

// moved is called with each piece.
func (s stallWatch) moved() {
	if s.timer != nil {
		s.timer.Reset(s.most)
	}
}

func (s stallWatch) end() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
