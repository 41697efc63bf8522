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

// errCut is the error of a truncated gzip file.
var errCut = errors.New("the gzip file is truncated or still being written")

// A text reads the text of a trace ahead in a goroutine. It detects gzip by its first bytes and supports
// concatenated gzip files. Reads fail after the context ends.
type text struct {
	*io.PipeReader
	packed packed
	stop   func() bool
}

// packed counts the stored bytes of a trace.
type packed struct {
	io.Reader
	bytes atomic.Int64
}

func (p *packed) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.bytes.Add(int64(n))
	return n, err
}

// newText starts reading in. The caller must close the text.
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
		w.CloseWithError(err) // nil means io.EOF
	}()
	return t
}

// onlyWriter hides other methods of a writer, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// unpack returns the uncompressed text of in.
func unpack(in io.Reader) (io.Reader, error) {
	plain := bufio.NewReaderSize(in, readBytes)
	if magic, _ := plain.Peek(2); string(magic) != "\x1f\x8b" {
		return struct{ io.Reader }{plain}, nil
	}
	unpacked, err := gzip.NewReader(plain)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("detected as gzip by its first bytes: %w", err)
	}
	return unpacked, err
}

// consumed returns the number of stored bytes read.
func (t *text) consumed() int64 { return t.packed.bytes.Load() }

// close ends the goroutine without waiting for it, because a read from a pipe may block forever.
func (t *text) close() {
	t.stop()
	t.PipeReader.Close()
}
