// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// errCut is gzip that ends before its text does.
var errCut = errors.New("the gzip file ends in the middle: it was cut off, or is still being written")

// chunks is how many reads a text is ahead of who reads it, at most.
const chunks = 3

// A text is what a trace says, whatever it was packed in: gzip is told by its
// first bytes, and may consist of several files behind each other. It is read and
// unpacked in a goroutine of its own, beside the one that decides, and a read ends
// when the context does. It is made by newText.
type text struct {
	ctx  context.Context
	full chan chunk
	free chan []byte
	done chan struct{} // closed by Close

	current chunk
	rest    []byte // of it
	packed  packed
}

// A chunk is the outcome of one read.
type chunk struct {
	data []byte
	err  error
}

// packed counts what is read of a trace as it is stored.
type packed struct {
	io.Reader
	bytes atomic.Int64
}

func (p *packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.bytes.Add(int64(n))
	return n, err
}

// newText starts to read in. The caller closes the text.
func newText(ctx context.Context, in io.Reader) *text {
	t := &text{ctx: ctx, full: make(chan chunk, chunks), free: make(chan []byte, chunks), done: make(chan struct{})}
	t.packed.Reader = in
	for range chunks {
		t.free <- make([]byte, readBytes)
	}
	go t.readAhead()
	return t
}

// readAhead reads until there is nothing more, or nobody who wants it.
func (t *text) readAhead() {
	plain, err := unpack(&t.packed)
	for {
		var buf []byte
		select {
		case buf = <-t.free:
		case <-t.done:
			return
		}
		n := 0
		if err == nil {
			n, err = plain.Read(buf)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errCut
		}
		select {
		case t.full <- chunk{buf[:n], err}:
		case <-t.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// unpack returns the text of in.
func unpack(in io.Reader) (io.Reader, error) {
	plain := bufio.NewReaderSize(in, readBytes)
	if magic, _ := plain.Peek(2); string(magic) != "\x1f\x8b" {
		return plain, nil
	}
	unpacked, err := gzip.NewReader(plain)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("taken for gzip because of its first bytes: %w", err)
	}
	return unpacked, err
}

// Read implements [io.Reader].
func (t *text) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.current.err != nil {
			return 0, t.current.err
		}
		if t.current.data != nil {
			t.free <- t.current.data[:readBytes] // there is room for all of them
		}
		select {
		case t.current = <-t.full:
			t.rest = t.current.data
		case <-t.ctx.Done():
			t.current = chunk{err: t.ctx.Err()}
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// consumed is how much of the trace has been read as it is stored.
func (t *text) consumed() int64 { return t.packed.bytes.Load() }

// close lets the goroutine end. It does not wait for it: a read of a pipe may
// take for ever.
func (t *text) close() { close(t.done) }
