// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/policy"
)

// Serve calls next for the admitted request r, settles the request by the response that next sends, and holds its slots until
// the end. The request ends when next returns and, if next hijacks the connection, the connection is closed.
func (a *Admission) Serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if a == nil {
		next.ServeHTTP(w, r)
		return
	}
	a.slots.KeepAlive()
	if a.call != nil {
		a.call.prepare(r)
		r = a.call.detach(r, a.readOns)
	}
	rec := &recorder{ResponseWriter: w, admission: a, request: r, open: 1}
	panicked := true
	defer func() {
		if panicked && rec.isCut() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				rec.release(true)
				panic(v)
			}
			panicked = false
		}
		rec.release(panicked)
	}()
	next.ServeHTTP(rec.writer(), r)
	panicked = false
}

// isCut reports whether the stream of the response was ended. A [httputil.ReverseProxy] then aborts its handler, but the
// response is complete.
func (w *recorder) isCut() bool { return w.admission.call != nil && w.admission.call.cut }

// A recorder is the [http.ResponseWriter] of an admitted request. It observes the response. It changes
// only the streams of language models: see [aiCall].
type recorder struct {
	http.ResponseWriter
	admission *Admission
	request   *http.Request
	status    int  // the final status; 0 before the response begins
	gone      bool // before that, the client disconnected and the work ended
	unknown   bool // the response is the handler's own: see [KeepCharge]
	bytes     atomic.Int64

	mu   sync.Mutex // guards the fields below
	open int        // the handler and the hijacked connection, as long as they are not done
}

// writer returns the writer for the handler, with the optional interfaces that the inner writer has.
func (w *recorder) writer() http.ResponseWriter {
	flushes, hijacks, pushes := false, false, false
	_, flushes = w.ResponseWriter.(http.Flusher)
	hijacks = canHijack(w.ResponseWriter)
	_, pushes = w.ResponseWriter.(http.Pusher)
	switch {
	case hijacks: // it flushes too, perhaps through Unwrap
		return hijackRecorder{flushRecorder{w}}
	case flushes && pushes:
		return pushRecorder{flushRecorder{w}}
	case flushes:
		return flushRecorder{w}
	}
	return w
}

// canHijack reports whether a writer, or one that it wraps, can hijack its connection. A handler could otherwise reach
// that one past the recorder.
func canHijack(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapper.Unwrap()
	}
}

// Unwrap is for [http.ResponseController].
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols { // the others are informational
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	if call := w.admission.call; call != nil && w.request.Method != http.MethodHead {
		return call.write(b, w.send)
	}
	return w.send(b)
}

func (w *recorder) send(b []byte) (int, error) {
	call := w.admission.call
	if call != nil && call.readOn.isGone() {
		return len(b), nil
	}
	n, err := w.ResponseWriter.Write(b)
	_ = w.count(int64(n), nil)
	if err != nil && call != nil && call.readOn.survives(err) {
		return len(b), nil
	}
	return n, err
}

// ReadFrom implements [io.ReaderFrom], so that the inner writer can use sendfile.
func (w *recorder) ReadFrom(from io.Reader) (int64, error) {
	w.begin(http.StatusOK)
	if w.admission.call != nil {
		return io.Copy(struct{ io.Writer }{w}, from)
	}
	n, err := io.Copy(w.ResponseWriter, from)
	return n, w.count(n, err)
}

// FlushError is for [http.ResponseController].
func (w *recorder) FlushError() error {
	w.begin(http.StatusOK)
	call := w.admission.call
	if call != nil && call.readOn.isGone() {
		return nil
	}
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if err != nil && call != nil && call.readOn.survives(err) {
		return nil
	}
	return err
}

func (w *recorder) count(n int64, err error) error {
	if w.request.Method != http.MethodHead { // net/http drops the body
		w.bytes.Add(n)
	}
	return err
}

// begin notes the final status. The header is final too.
func (w *recorder) begin(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if w.admission.call != nil {
		w.admission.call.begin(w.request.Context(), status, w.Header())
	}
	if w.gone = isGone(w.request); w.gone || w.unknown {
		return
	}
	if res, complete := newResponse(status, w.Header()); complete {
		w.admission.respond(w.request.Context(), &res)
	}
}

// release ends the request when its handler and its connection are done.
func (w *recorder) release(panicked bool) {
	if panicked && w.status == 0 {
		w.keepCharge()
		w.begin(http.StatusInternalServerError)
	}
	w.mu.Lock()
	w.open--
	open := w.open
	w.mu.Unlock()
	if open > 0 {
		return
	}
	w.begin(http.StatusOK) // net/http sends it for a handler that sends nothing
	var res policy.Response
	unknown := w.gone || w.unknown
	if unknown && w.admission.call != nil {
		w.admission.call.close()
	}
	if !unknown {
		res, _ = newResponse(w.status, w.Header())
		res.Bytes = w.bytes.Load()
		if call := w.admission.call; call != nil {
			call.broken = call.broken || panicked
			if rest := call.flush(); len(rest) > 0 && !panicked {
				_, _ = w.send(rest)
			}
			call.finish(&res)
			w.admission.reportCall(w.request.Context(), &res)
		}
	}
	w.admission.end(w.request.Context(), &res)
	if call := w.admission.call; call != nil {
		call.readOn.end()
	}
}

// KeepCharge notes that a provider may have processed the request, but the handler of w answers itself. Examples are 502 and
// 504 after a request to a language model was sent. It keeps the charge of its estimate, because the provider may bill it.
//
// Call KeepCharge before the response begins, as in the ErrorHandler of a [net/http/httputil.ReverseProxy]. It has no effect on
// other requests. Package proxy calls it.
func KeepCharge(w http.ResponseWriter) {
	if r, ok := w.(interface{ keepCharge() }); ok {
		r.keepCharge()
	}
}

func (w *recorder) keepCharge() { w.unknown = w.unknown || w.status == 0 && w.admission.call != nil }

// hijack counts the bytes of a hijacked connection, and keeps the request open until the connection is closed.
func (w *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.begin(http.StatusSwitchingProtocols)
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	counted := &hijackedConn{Conn: conn, recorder: w}
	if buffered.Writer.Buffered() == 0 {
		buffered.Writer.Reset(counted)
	}
	return counted, buffered, nil
}

type flushRecorder struct{ *recorder }

func (w flushRecorder) Flush() { _ = w.FlushError() }

type hijackRecorder struct{ flushRecorder }

func (w hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.hijack()
}

type pushRecorder struct{ flushRecorder }

func (w pushRecorder) Push(target string, opts *http.PushOptions) error {
	return w.ResponseWriter.(http.Pusher).Push(target, opts)
}

// A hijackedConn is the connection of a request that is not over.
type hijackedConn struct {
	net.Conn
	recorder *recorder
	closed   sync.Once
}

func (c *hijackedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.recorder.bytes.Add(int64(n))
	return n, err
}

func (c *hijackedConn) Close() error {
	err := c.Conn.Close()
	c.closed.Do(func() { c.recorder.release(false) })
	return err
}

// CloseWrite closes one direction, as connections of TCP and TLS can.
func (c *hijackedConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}
