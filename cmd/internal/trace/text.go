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

// errCut is the error of gzip that ends before its text does.
var errCut = errors.New("the gzip file ends in the middle: it was cut off, or is still being written")

// A text is the text of a trace. gzip is detected by its first bytes, and may consist of
// several files one after the other. A goroutine reads and unpacks the text ahead of the
// reader. A read fails when the context ends.
type text struct {
	*io.PipeReader
	packed packed
	stop   func() bool
}

// packed counts the bytes of a trace as it is stored.
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
	r, w := io.Pipe()
	t := &text{PipeReader: r}
	t.packed.Reader = in
	t.stop = context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() {
		plain, err := unpack(&t.packed)
		if err == nil {
			_, err = io.CopyBuffer(onlyWriter{w}, plain, make([]byte, readBytes))
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errCut
		}
		w.CloseWithError(err) // nil is io.EOF
	}()
	return t
}

// onlyWriter hides other methods of a writer, so that a copy uses its buffer.
type onlyWriter struct{ io.Writer }

// unpack returns the text of in.
func unpack(in io.Reader) (io.Reader, error) {
	plain := bufio.NewReaderSize(in, readBytes)
	if magic, _ := plain.Peek(2); string(magic) != "\x1f\x8b" {
		return struct{ io.Reader }{plain}, nil
	}
	unpacked, err := gzip.NewReader(plain)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("taken for gzip because of its first bytes: %w", err)
	}
	return unpacked, err
}

// consumed is the number of bytes of the trace that were read as it is stored.
func (t *text) consumed() int64 { return t.packed.bytes.Load() }

// close ends the goroutine. It does not wait for it: a read of a pipe may take forever.
func (t *text) close() {
	t.stop()
	t.PipeReader.Close()
}
