// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Reader reads the requests of a trace. It is not safe for concurrent use.
type Reader struct {
	lines  lineReader
	format Format
	line   int
	text   string // text of that line without surrounding space
	req    Request
	clock  logClock
}

func NewReader(r io.Reader, format Format) *Reader {
	return &Reader{lines: newLineReader(r), format: format}
}

// Line returns the number of the last line, from 1.
func (r *Reader) Line() int { return r.line }

// Bytes returns the number of bytes read.
func (r *Reader) Bytes() int64 { return r.lines.bytes }

// Format returns the format of the trace. It is [FormatAuto] until the first request.
func (r *Reader) Format() Format { return r.format }

// Next returns the next request, which is valid until the following call. It returns [io.EOF] at the end. For an
// invalid line it returns a [*LineError], and the next call continues with the next line. It skips empty lines.
func (r *Reader) Next() (*Request, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if r.line == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		r.text = line
		sniffed := r.format == FormatAuto
		if sniffed {
			r.format = sniff(line)
		}
		if r.format == FormatJSONL {
			r.req.reset()
			err = parseJSON(&r.req, line)
		} else {
			err = parseLog(&r.req, line, &r.clock)
		}
		if err != nil {
			if sniffed {
				r.format = FormatAuto
				err = fmt.Errorf("%w; detected as %s by its first character", err, sniff(line))
			}
			return nil, &LineError{Line: r.line, Err: err}
		}
		return &r.req, nil
	}
}

func sniff(line string) Format {
	if line[0] == '{' {
		return FormatJSONL
	}
	return FormatCombined
}

func (r *Reader) readLine() (string, error) {
	line, err := r.lines.next()
	switch {
	case err == nil:
		r.line++
		return line, nil
	case errors.Is(err, errTooLong):
		r.line++
		return "", &LineError{Line: r.line, Err: err}
	case errors.Is(err, io.EOF):
		return "", io.EOF
	case r.line == 0:
		return "", err
	}
	return "", fmt.Errorf("after line %d: %w", r.line, err)
}
