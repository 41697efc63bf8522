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

// A buffer holds what is read, understood and written for one request.
type buffer struct {
	in, out []byte
	limits  []api.Limit // of one decision
	decoder decoder
}

var buffers = sync.Pool{New: func() any { return &buffer{in: make([]byte, 0, 1<<10), out: make([]byte, 0, 1<<10)} }}

// maxKept is the largest answer whose memory is kept for others. A hundred
// requests to which many limits apply make a longer one.
const maxKept = 256 << 10

func (b *buffer) release() {
	b.decoder.release()
	clear(b.limits)
	if b.in, b.out = b.in[:0], b.out[:0]; cap(b.out) <= maxKept {
		buffers.Put(b)
	}
}

const tooLong = "the body is longer than 64 KiB; send a smaller batch, and no long values"

// readBody reads the body of r, and not one that is too long.
func (b *buffer) readBody(w http.ResponseWriter, r *http.Request) *api.Problem {
	if r.ContentLength > MaxBodyBytes {
		w.Header()["Connection"] = []string{"close"} // rather than to read it all
		return api.NewProblem(http.StatusRequestEntityTooLarge, tooLong)
	}
	body := r.Body
	if r.ContentLength < 0 { // a length that is known is kept to
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
		case len(b.in) > MaxBodyBytes: // said of another front than net/http's
			return api.NewProblem(http.StatusRequestEntityTooLarge, tooLong)
		case len(b.in) == cap(b.in):
			b.in = append(b.in, 0)[:len(b.in)]
		}
	}
}

// readProblem says why a body could not be read.
func readProblem(err error) *api.Problem {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return api.NewProblem(http.StatusRequestEntityTooLarge, tooLong)
	}
	return api.NewProblem(http.StatusBadRequest, "the body could not be read to its end; send as much as Content-Length says")
}

// unmeasured is the longest body that net/http counts itself.
const unmeasured = 2 << 10

func (b *buffer) serve(w http.ResponseWriter, status int) {
	b.out = append(b.out, '\n')
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Cache-Control"] = noStore
	if len(b.out) > unmeasured {
		h["Content-Length"] = []string{strconv.Itoa(len(b.out))} // not in chunks
	}
	w.WriteHeader(status)
	w.Write(b.out) // a client that has gone needs no answer
}

// Header values that are assigned as they are: net/http does not change them.
var (
	typeJSON = []string{"application/json"}
	noStore  = []string{"no-store"}
)
