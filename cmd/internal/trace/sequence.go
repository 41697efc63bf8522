// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/metehq/mete/bucket"
)

// A Sequence reads several traces as one, such as rotated logs, oldest first. Each trace may be compressed by
// gzip. With the format [FormatAuto], each trace has its own format. Create it with [NewSequence]. It is not safe for
// concurrent use.
type Sequence struct {
	ctx    context.Context
	names  []string
	open   func(name string) (io.ReadCloser, error)
	format Format

	anyOrder bool // allow traces in any order

	at     int // index in names
	file   io.Closer
	text   *text
	reader *Reader // nil between traces

	requests int64          // requests of the current trace
	began    bucket.Instant // start of the previous trace, or of this one after its first request
	earlier  bool           // a previous trace had requests
	lines    int            // of previous traces
	consumed int64          // bytes of previous traces
	seen     Format
}

// NewSequence returns a reader of the named traces, which it opens one after another. After ctx ends, reads fail
// with its error.
func NewSequence(ctx context.Context, names []string, format Format, open func(name string) (io.ReadCloser, error)) *Sequence {
	return &Sequence{ctx: ctx, names: names, open: open, format: format}
}

// Name returns the name of the last trace.
func (s *Sequence) Name() string { return s.names[min(s.at, len(s.names)-1)] }

// Line returns the number of the last line in its trace, from 1.
func (s *Sequence) Line() int {
	if s.reader == nil {
		return 0
	}
	return s.reader.Line()
}

// Lines returns the number of lines read from all traces.
func (s *Sequence) Lines() int { return s.lines + s.Line() }

// Consumed returns the number of stored bytes read from all traces.
func (s *Sequence) Consumed() int64 {
	if s.text == nil {
		return s.consumed
	}
	return s.consumed + s.text.bytesRead()
}

// Format returns the format of the last trace. It is [FormatAuto] until the first request.
func (s *Sequence) Format() Format { return s.seen }

// Next returns the next request like [Reader.Next]. A trace that begins before the previous trace is an error.
func (s *Sequence) Next() (*Request, error) {
	for {
		if err := s.begin(); err != nil {
			return nil, err
		}
		req, err := s.reader.Next()
		if errors.Is(err, io.EOF) && s.at+1 < len(s.names) {
			s.end()
			continue
		}
		if err != nil {
			return nil, err
		}
		s.requests++
		if s.requests == 1 {
			if err := s.checkOrder(req.At); err != nil {
				return nil, err
			}
		}
		return req, nil
	}
}

func (s *Sequence) begin() error {
	if s.reader != nil {
		return nil
	}
	file, err := s.open(s.names[s.at])
	if err != nil {
		return err
	}
	s.file, s.text = file, newText(s.ctx, file)
	s.reader = NewReader(s.text, s.format)
	return nil
}

// checkOrder checks the start of a trace against the previous one.
func (s *Sequence) checkOrder(at bucket.Instant) error {
	if s.earlier && at < s.began && !s.anyOrder {
		return errors.New("begins before the previous trace: list the oldest first, as ls -tr does, or use --sort")
	}
	s.began, s.earlier, s.seen = at, true, s.reader.Format()
	return nil
}

func (s *Sequence) end() {
	s.consumed += s.text.bytesRead()
	s.lines += s.reader.Line()
	s.Close()
	s.text, s.reader = nil, nil
	s.requests = 0
	s.at++
}

// Close closes the current trace and ends the sequence.
func (s *Sequence) Close() error {
	if s.file == nil {
		return nil
	}
	s.text.close()
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return fmt.Errorf("trace: close %s: %w", s.Name(), err)
	}
	return nil
}
