// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/metehq/mete/bucket"
)

// A Sequence reads traces one after the other, as if they were one: a log and
// what rotation made of it, the oldest first. Each may be compressed by gzip, and
// is of its own format where that is [Auto]. It is made by [NewSequence] and not
// safe for concurrent use.
type Sequence struct {
	ctx    context.Context
	names  []string
	open   func(name string) (io.ReadCloser, error)
	format Format

	anyOrder bool // of the traces

	at     int // in names
	file   io.Closer
	text   *text
	reader *Reader // nil between traces

	requests int64          // that the current trace has had
	began    bucket.Instant // the trace before, or this one when it had a request
	earlier  bool           // a trace before had requests
	lines    int            // of the traces before
	consumed int64          // likewise
	seen     Format
}

// NewSequence returns a reader of the named traces. It opens each when its turn
// comes. Reading ends when ctx does, with its error.
func NewSequence(ctx context.Context, names []string, format Format, open func(name string) (io.ReadCloser, error)) *Sequence {
	return &Sequence{ctx: ctx, names: names, open: open, format: format}
}

// Name is that of the trace that was read last.
func (s *Sequence) Name() string { return s.names[min(s.at, len(s.names)-1)] }

// Line is the number of the line read last, from 1, in its trace.
func (s *Sequence) Line() int {
	if s.reader == nil {
		return 0
	}
	return s.reader.Line()
}

// Lines is how many lines have been read of all traces.
func (s *Sequence) Lines() int { return s.lines + s.Line() }

// Consumed is how many bytes of the traces have been read, as they are stored.
func (s *Sequence) Consumed() int64 {
	if s.text == nil {
		return s.consumed
	}
	return s.consumed + s.text.consumed()
}

// Format is that of the trace that was read last. It is [Auto] until the first
// request is read.
func (s *Sequence) Format() Format { return s.seen }

// Next returns the next request, as [Reader.Next] does. A trace that begins
// before the one in front of it does is an error.
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
			if err := s.inOrder(req.At); err != nil {
				return nil, err
			}
		}
		return req, nil
	}
}

// begin opens the next trace, unless one is open.
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

// inOrder notes when a trace begins.
func (s *Sequence) inOrder(at bucket.Instant) error {
	if s.earlier && at < s.began && !s.anyOrder {
		return errors.New("begins before the trace in front of it: name the oldest first, as ls -tr does, or sort all of them with --sort")
	}
	s.began, s.earlier, s.seen = at, true, s.reader.Format()
	return nil
}

// end closes the trace that has been read.
func (s *Sequence) end() {
	s.consumed += s.text.consumed()
	s.lines += s.reader.Line()
	s.Close()
	s.text, s.reader = nil, nil
	s.requests = 0
	s.at++
}

// Close closes the trace that is being read, and ends the reading.
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
