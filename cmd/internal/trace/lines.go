// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxLineBytes bounds a line with its end. A longer one is a [LineError].
const MaxLineBytes = 1 << 20

// readBytes is how much is read at a time: little enough to stay in the
// processor's cache until its lines have been decided.
const readBytes = 1 << 16

// errTooLong is a line longer than MaxLineBytes.
var errTooLong = fmt.Errorf("longer than %d bytes", MaxLineBytes)

// A lineReader splits a text into lines. Those that were read together share one
// string, so that a line costs no allocation and may yet be kept. It never reads
// ahead of a line that is complete.
type lineReader struct {
	in    io.Reader
	buf   []byte
	start int    // of what is in buf and not yet in text
	end   int    // of what is in buf
	text  string // lines that have been read and not returned
	err   error  // that ended the reading
	bytes int64  // of the lines returned
}

func newLineReader(in io.Reader) lineReader {
	return lineReader{in: in, buf: make([]byte, MaxLineBytes)}
}

// next returns the next line with its end, which the last one may lack. The error
// is io.EOF behind it, errTooLong for a line that was passed over, or the reader's
// own; what stands between that and the last line's end is not returned.
func (r *lineReader) next() (string, error) {
	for r.text == "" {
		if err := r.fill(); err != nil {
			return "", err
		}
	}
	line, rest := r.text, ""
	if i := strings.IndexByte(r.text, '\n'); i >= 0 {
		line, rest = r.text[:i+1], r.text[i+1:]
	}
	r.text = rest
	r.bytes += int64(len(line))
	return line, nil
}

// fill makes text of what the reader has next: whole lines, or what stands behind
// the last one.
func (r *lineReader) fill() error {
	r.end = copy(r.buf, r.buf[r.start:r.end])
	r.start = 0
	for r.err == nil {
		if r.end == len(r.buf) {
			return r.skip()
		}
		n, err := r.in.Read(r.buf[r.end:min(r.end+readBytes, len(r.buf))])
		r.err = err
		last := bytes.LastIndexByte(r.buf[r.end:r.end+n], '\n')
		if last >= 0 {
			r.start = r.end + last + 1
			r.text = string(r.buf[:r.start])
		}
		if r.end += n; last >= 0 {
			return nil
		}
	}
	if r.end > 0 && errors.Is(r.err, io.EOF) {
		r.text, r.end = string(r.buf[:r.end]), 0
		return nil
	}
	return r.err
}

// skip passes over the rest of a line that fills the buffer.
func (r *lineReader) skip() error {
	for {
		if i := bytes.IndexByte(r.buf[:r.end], '\n'); i >= 0 {
			r.start = i + 1
			r.bytes += int64(r.start)
			return errTooLong
		}
		r.bytes += int64(r.end)
		if r.end = 0; r.err != nil {
			break
		}
		r.end, r.err = r.in.Read(r.buf[:readBytes])
	}
	if errors.Is(r.err, io.EOF) {
		return errTooLong
	}
	return r.err
}
