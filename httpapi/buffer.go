// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// A buffer holds what is read and written for one request.
type buffer struct{ in, out []byte }

var buffers = sync.Pool{New: func() any { return &buffer{in: make([]byte, 0, 1<<10), out: make([]byte, 0, 1<<10)} }}

func (b *buffer) release() {
	b.in, b.out = b.in[:0], b.out[:0]
	buffers.Put(b)
}

// readBody reads the body of r, and not one that is too long.
func (b *buffer) readBody(w http.ResponseWriter, r *http.Request) *Problem {
	const tooLong = "the body is longer than 64 KiB; send a smaller batch, and no long values"
	if r.ContentLength > MaxBodyBytes {
		w.Header()["Connection"] = []string{"close"} // rather than to read it all
		return problem(http.StatusRequestEntityTooLarge, tooLong)
	}
	body := http.MaxBytesReader(w, r.Body, MaxBodyBytes)
	for {
		n, err := body.Read(b.in[len(b.in):cap(b.in)])
		b.in = b.in[:len(b.in)+n]
		var long *http.MaxBytesError
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &long):
			return problem(http.StatusRequestEntityTooLarge, tooLong)
		case err != nil:
			return problem(http.StatusBadRequest, "the body could not be read to its end; send as much as Content-Length says")
		}
		if len(b.in) == cap(b.in) {
			b.in = append(b.in, 0)[:len(b.in)]
		}
	}
}

func (b *buffer) serve(w http.ResponseWriter, status int) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	w.WriteHeader(status)
	w.Write(append(b.out, '\n')) // a client that has gone needs no answer
}
