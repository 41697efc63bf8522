// SPDX-License-Identifier: Apache-2.0

package httpfacts

import (
	"io"
	"net/http"
	"runtime"
	"sync"

	"github.com/metehq/mete/ai"
)

// The memory of a body begins with its length if the length is known and small, or with firstPiece, and doubles. A client that
// announces a long body and sends nothing thus holds little.
const (
	firstPiece = 512
	mostFirst  = 32 << 10
)

// A heldBody is a body whose beginning was read for rules. It counts its memory until the handler has read that part, the body
// is closed, or [FreeBody] is called. At the latest, the garbage collector frees it.
type heldBody struct {
	rest io.ReadCloser
	held *heldBytes
	tail *ai.Tail // checks the bytes of rest; may be nil

	mu    sync.Mutex // guards the fields below: a transport may read while the handler returns
	begin []byte     // not read by the handler yet
	err   error      // of the read after begin
	over  bool
}

// holdBody reads at most ai.MaxRequestBytes+1 bytes of a body. A length below 0 is unknown. The dispute tells that there is no room for the body.
func (f *Facts) holdBody(body io.ReadCloser, length int64) (*heldBody, dispute) {
	address, _ := f.Address()
	h := &heldBody{rest: body, held: &heldBytes{all: &f.source.bodies, client: clientOf(address)}}
	runtime.AddCleanup(h, (*heldBytes).free, h.held)
	next := firstPiece
	if length >= 0 {
		next = int(min(length, mostFirst)) + 1 // one byte more finds the end without another piece
	}
	for len(h.begin) <= ai.MaxRequestBytes {
		if cap(h.begin) == len(h.begin) {
			more := min(max(len(h.begin), next), ai.MaxRequestBytes+1-len(h.begin))
			if ok, shared := h.held.grow(int64(more)); !ok {
				h.held.free()
				d := dispute{kind: manyBodies}
				if shared {
					d.name = " of this client"
				}
				return h, d
			}
			grown := make([]byte, len(h.begin), len(h.begin)+more)
			copy(grown, h.begin)
			h.begin = grown
		}
		if f.beforeRead != nil {
			f.beforeRead()
		}
		n, err := body.Read(h.begin[len(h.begin):cap(h.begin)])
		h.begin = h.begin[:len(h.begin)+n]
		if err != nil {
			h.err = err
			break
		}
	}
	return h, dispute{}
}

func (h *heldBody) Read(p []byte) (int, error) {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	if len(h.begin) > 0 {
		n := copy(p, h.begin)
		if h.begin = h.begin[n:]; len(h.begin) == 0 {
			h.held.free()
		}
		h.mu.Unlock()
		return n, nil
	}
	err := h.err
	h.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := h.rest.Read(p)
	if h.tail == nil {
		return n, err
	}
	invalid := h.tail.Check(p[:n])
	if invalid == nil && err == io.EOF {
		invalid = h.tail.End()
	}
	if invalid != nil { // the handler must not get the whole body
		return 0, h.fail(invalid)
	}
	return n, err
}

// fail ends the body with an error.
func (h *heldBody) fail(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	return err
}

// failed reports whether reading the beginning failed.
func (h *heldBody) failed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err != nil && h.err != io.EOF
}

// setBegin replaces the part that was read.
func (h *heldBody) setBegin(begin []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin = begin
}

func (h *heldBody) Close() error {
	h.free()
	return h.rest.Close()
}

func (h *heldBody) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin, h.over = nil, true
	h.held.free()
}

// FreeBody frees the memory of the body of r that a rule has read. Nothing may read the body afterwards.
func FreeBody(r *http.Request) {
	if h, ok := r.Body.(*heldBody); ok {
		h.free()
	}
}
