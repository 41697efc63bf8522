// SPDX-License-Identifier: Apache-2.0

package httplimit

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/metehq/mete/policy"
)

// A modelBody is the body of a response while the program reads it. It charges the tokens of a stream, and ends a stream that
// may not go on. It settles the request once: at the end, on an error, or when the program closes it. If the program closes it
// before the usage is known, a [readOn] reads the rest.
type modelBody struct {
	ctx       context.Context // of the program's request
	from      io.ReadCloser
	admission *Admission
	response  policy.Response
	readOn    *readOn
	want, got chan struct{} // the program wants bytes, and add has some; unused without a readOn

	mu      sync.Mutex // guards the fields below: Close can come during a Read
	pending []byte     // read and counted, and not yet with the program
	err     error      // after pending
	closed  bool
}

// tapModel settles an admitted request by its response.
func tapModel(ctx context.Context, a *Admission, res *http.Response) {
	response, complete := newResponse(res.StatusCode, res.Header)
	body := &modelBody{ctx: ctx, from: res.Body, admission: a, response: response}
	if a.call != nil {
		a.call.begin(ctx, res.StatusCode, res.Header)
		body.readOn = a.call.readOn
		if a.call.request.Stream { // it can become shorter
			res.Header.Del("Content-Length")
			res.ContentLength = -1
		}
	}
	if complete {
		a.respond(ctx, &response)
	}
	if res.StatusCode == http.StatusSwitchingProtocols || res.Body == nil {
		body.settle()
		body.readOn.end()
		return
	}
	res.Body = body
	if body.readOn != nil {
		body.want, body.got = make(chan struct{}, 1), make(chan struct{}, 1)
		go body.pump()
	}
}

// Read implements [io.Reader]. It passes each piece of a stream on at once.
func (b *modelBody) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if n, err := b.take(p); n > 0 || err != nil {
			return n, err
		}
		if b.readOn == nil {
			n, err := b.from.Read(p) // without the lock, so that Close can end it
			b.add(p[:n], err)
			continue
		}
		select {
		case b.want <- struct{}{}:
		default: // a Read that the program gave up has asked already
		}
		select {
		case <-b.got:
		case <-b.readOn.away:
		}
	}
}

// take moves pending bytes to p.
func (b *modelBody) take(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case len(b.pending) > 0:
		n := copy(p, b.pending)
		b.pending = b.pending[:copy(b.pending, b.pending[n:])]
		return n, nil
	case b.err == nil && b.readOn.isGone():
		return 0, goneError(b.ctx)
	}
	return 0, b.err
}

// pump reads a piece whenever the program wants one, and everything once the program is gone.
func (b *modelBody) pump() {
	defer b.readOn.end()
	piece := make([]byte, pumpBytes)
	for {
		select {
		case <-b.want:
		case <-b.readOn.away:
		}
		n, err := b.from.Read(piece)
		ended := b.add(piece[:n], err)
		select {
		case b.got <- struct{}{}:
		default:
		}
		if ended {
			_ = b.from.Close()
			return
		}
	}
}

// pumpBytes is the size of the pieces of a pump, as of [io.Copy].
const pumpBytes = 32 << 10

// add counts bytes of the provider and the end of its body. It reports whether the request is settled.
func (b *modelBody) add(p []byte, err error) (ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || b.closed && b.readOn == nil {
		return true
	}
	call := b.admission.call
	switch {
	case len(p) == 0:
	case call == nil:
		_, _ = b.keep(p)
	case b.write(call, p) != nil:
		_ = b.from.Close() // the provider stops to generate
		err = io.EOF
	}
	if err == nil {
		return false
	}
	if call != nil {
		b.pending = append(b.pending, call.flush()...)
		call.broken = err != io.EOF
	}
	b.err = err
	b.settle()
	return true
}

// write passes bytes to the program, up to the end of a stream that may not go on.
func (b *modelBody) write(call *aiCall, p []byte) error {
	_, err := call.write(p, b.keep)
	return err
}

func (b *modelBody) keep(p []byte) (int, error) {
	if b.readOn.isGone() {
		return len(p), nil
	}
	b.pending = append(b.pending, p...)
	b.response.Bytes += int64(len(p))
	return len(p), nil
}

// Close implements [io.Closer].
func (b *modelBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.pending = true, nil
	switch {
	case b.err != nil:
		return b.from.Close()
	case b.readOn != nil && b.response.Status < http.StatusBadRequest && !b.admission.call.usageKnown():
		b.readOn.leave() // pump settles it
		return nil
	}
	err := b.from.Close()
	b.err = http.ErrBodyReadAfterClose
	b.settle()
	b.readOn.leave()
	return err
}

// settle ends the request. The caller sets err, so that this happens once.
func (b *modelBody) settle() {
	if b.admission.call != nil {
		b.admission.call.finish(&b.response)
		b.admission.reportCall(b.ctx, &b.response)
	}
	b.admission.end(b.ctx, &b.response)
}
