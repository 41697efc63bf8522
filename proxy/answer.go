// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// copyBytes is the size [io.Copy] uses.
const copyBytes = 32 << 10

// answer passes the answer of the server on.
func (e *exchange) answer(res *http.Response) {
	if res.StatusCode < 200 || res.StatusCode > 999 { // which net/http would not let pass
		res.Body.Close()
		e.fail(fmt.Errorf("the server answers with status %d", res.StatusCode))
		return
	}
	e.begin()
	h := e.w.Header()
	e.takeHeader(res)
	withoutOurs(res.Trailer, h)
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
	withoutOurs(res.Trailer, h)
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
		// The header must not wait for a body that may take its time.
		if e.bounded(control, func() error { return e.flush(control) }) != nil {
			return context.Canceled // the client has gone
		}
	}
	watch := e.watchStall()
	defer watch.stop()
	for {
		watch.start()
		n, err := res.Body.Read(space[:])
		watch.stop() // the client may take its own time
		if n > 0 {
			left -= int64(n)
			if e.write(control, space[:n], err == nil && left != 0) != nil {
				return context.Canceled
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

// write sends a piece of the body, at once where more is to come.
func (e *exchange) write(control *http.ResponseController, piece []byte, more bool) error {
	return e.bounded(control, func() error {
		_, err := e.w.Write(piece)
		if err == nil && more {
			err = e.flush(control)
		}
		return err
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
