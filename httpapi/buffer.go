// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/metehq/mete/api"
)

type buffer struct {
	in, out []byte
	limits  []api.Limit // limits of one decision
	decoder decoder
}

var buffers = sync.Pool{New: func() any { return &buffer{in: make([]byte, 0, 1<<10), out: make([]byte, 0, 1<<10)} }}

// maxKept is the largest output buffer that is reused. Only a full batch with many limits needs more.
const maxKept = 256 << 10

func (b *buffer) release() {
	b.decoder.release()
	clear(b.limits)
	if b.in, b.out = b.in[:0], b.out[:0]; cap(b.out) <= maxKept {
		buffers.Put(b)
	}
}

const tooLong = "the body is longer than 64 KiB; send a smaller batch or shorter values"

func (b *buffer) readBody(w http.ResponseWriter, r *http.Request) *api.Problem {
	if r.ContentLength > MaxBodyBytes {
		w.Header()["Connection"] = []string{"close"} // avoids reading the rest
		return api.NewProblem(http.StatusRequestEntityTooLarge, tooLong)
	}
	body := r.Body
	if r.ContentLength < 0 { // net/http enforces a known Content-Length
		body = http.MaxBytesReader(w, body, MaxBodyBytes)
	}
	for {
		n, err := body.Read(b.in[len(b.in):cap(b.in)])
		b.in = b.in[:len(b.in)+n]
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return readProblem(err)
		case len(b.in) > MaxBodyBytes: // possible with a server other than net/http
			return api.NewProblem(http.StatusRequestEntityTooLarge, tooLong)
		case len(b.in) == cap(b.in):
			b.in = append(b.in, 0)[:len(b.in)]
		}
	}
}

func readProblem(err error) *api.Problem {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return api.NewProblem(http.StatusRequestEntityTooLarge, tooLong)
	}
	return api.NewProblem(http.StatusBadRequest, "the body ended early; send as many bytes as Content-Length states")
}

// unmeasured is the longest body for which net/http sets Content-Length itself.
const unmeasured = 2 << 10

func (b *buffer) serve(w http.ResponseWriter, status int) {
	b.out = append(b.out, '\n')
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	if len(b.out) > unmeasured {
		h["Content-Length"] = []string{strconv.Itoa(len(b.out))} // avoids chunked encoding
	}
	w.WriteHeader(status)
	w.Write(b.out) // ignore a client that is gone
}

// Shared header values. net/http does not modify them.
var (
	typeJSON = []string{"application/json"}
	noStore  = []string{"no-store"}
)
