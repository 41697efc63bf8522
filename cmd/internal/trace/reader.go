// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes bounds a line. A longer one is a [LineError].
const MaxLineBytes = 1 << 20

// A Reader reads the requests of a trace. It is not safe for concurrent use.
type Reader struct {
	in     *bufio.Reader
	format Format
	line   int
	bytes  int64
	req    Request
	clock  logClock
}

// NewReader returns a reader of the trace in r.
func NewReader(r io.Reader, format Format) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, MaxLineBytes), format: format}
}

// Line is the number of the line read last, from 1.
func (r *Reader) Line() int { return r.line }

// Bytes is how much has been read.
func (r *Reader) Bytes() int64 { return r.bytes }

// Format is that of the trace. It is [Auto] until the first request is read.
func (r *Reader) Format() Format { return r.format }

// Next returns the next request; it is valid until the following call. At the
// end the error is [io.EOF]. A line that makes no sense is a [*LineError], and
// the call after it goes on with the next line. Empty lines are passed over.
func (r *Reader) Next() (*Request, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		sniffed := r.format == Auto
		if sniffed {
			r.format = sniff(line)
		}
		r.req.reset()
		if r.format == JSONL {
			err = parseJSON(&r.req, string(line))
		} else {
			err = parseLog(&r.req, string(line), &r.clock)
		}
		if err != nil {
			if sniffed {
				r.format = Auto
				err = fmt.Errorf("%w; taken for %s because of its first character", err, sniff(line))
			}
			return nil, &LineError{Line: r.line, Err: err}
		}
		return &r.req, nil
	}
}

func sniff(line []byte) Format {
	if line[0] == '{' {
		return JSONL
	}
	return Combined
}

// readLine returns the next line, which is valid until the next call.
func (r *Reader) readLine() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	r.bytes += int64(len(line))
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		if len(line) == 0 {
			return nil, io.EOF
		}
	case errors.Is(err, bufio.ErrBufferFull):
		r.line++
		return nil, r.skipLine()
	default:
		return nil, fmt.Errorf("line %d: %w", r.line+1, err)
	}
	r.line++
	return line, nil
}

// skipLine reads the rest of a line that is too long, and says so.
func (r *Reader) skipLine() error {
	for {
		rest, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(rest))
		if err == nil || errors.Is(err, io.EOF) {
			return &LineError{Line: r.line, Err: fmt.Errorf("longer than %d bytes", MaxLineBytes)}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("line %d: %w", r.line, err)
		}
	}
}
