// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/metehq/mete/bucket"
)

// MaxSortBytes bounds the memory of a [Sorted]. The rest of the traces is in a temporary file, in sorted runs.
const MaxSortBytes = 64 << 20

// lineBytes is the memory of a line in addition to its text.
const lineBytes = 96

// runBytes is the size of the read buffer per run.
const runBytes = 1 << 16

// A Sorted reads traces in the order of their times. Lines with the same time keep their order. It reads all
// traces before it returns the first request. Create it with [NewSorted]. It is not safe for concurrent use.
type Sorted struct {
	from *Sequence
	most int // memory in bytes

	lines   []sortedLine // of the current run; after reading, the remaining ones
	bytes   int
	file    *os.File // contains the other runs; nil for none
	runs    []int64  // offsets of the runs
	merged  runHeap
	whole   bool // all traces have been read
	current sortedLine
	req     Request
	clock   logClock
}

// A sortedLine is a line with its position, ordered by time and number.
type sortedLine struct {
	At     bucket.Instant
	Number int // of the line among all traces
	Trace  int // index in the names
	Line   int // number in the trace
	Format Format
	Text   string
}

func (a *sortedLine) compare(b *sortedLine) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Number, b.Number))
}

// NewSorted returns a reader that sorts the requests of from. It uses up to most bytes of memory, or
// [MaxSortBytes] if most is 0.
func NewSorted(from *Sequence, most int) *Sorted {
	from.anyOrder = true
	if most <= 0 {
		most = MaxSortBytes
	}
	return &Sorted{from: from, most: most}
}

// Name returns the trace of the last request or, before the first, of the last line.
func (s *Sorted) Name() string {
	if s.whole {
		return s.from.names[s.current.Trace]
	}
	return s.from.Name()
}

// Line returns the number of the last line in the trace of Name, from 1.
func (s *Sorted) Line() int {
	if s.whole {
		return s.current.Line
	}
	return s.from.Line()
}

// Lines, Consumed and Format return the values of the [Sequence].
func (s *Sorted) Lines() int      { return s.from.Lines() }
func (s *Sorted) Consumed() int64 { return s.from.Consumed() }
func (s *Sorted) Format() Format  { return s.from.Format() }

// Next returns the next request like [Sequence.Next]. It reports all invalid lines first.
func (s *Sorted) Next() (*Request, error) {
	for !s.whole {
		req, err := s.from.Next()
		switch {
		case errors.Is(err, io.EOF):
			if err := s.finish(); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, err
		default:
			if err := s.add(req.At); err != nil {
				return nil, err
			}
		}
	}
	if err := s.advance(); err != nil {
		return nil, err
	}
	s.req.reset()
	if s.current.Format == FormatJSONL {
		return &s.req, parseJSON(&s.req, s.current.Text)
	}
	return &s.req, parseLog(&s.req, s.current.Text, &s.clock)
}

func (s *Sorted) add(at bucket.Instant) error {
	reader := s.from.reader
	s.lines = append(s.lines, sortedLine{at, s.from.Lines(), s.from.at, reader.Line(), reader.Format(), reader.text})
	if s.bytes += len(reader.text) + lineBytes; s.bytes < s.most {
		return nil
	}
	return s.spill()
}

// spill sorts the lines in memory and writes them to the file as a run.
func (s *Sorted) spill() error {
	if s.file == nil {
		f, err := os.CreateTemp("", "mete-sort-*")
		if err != nil {
			return fmt.Errorf("trace: sort: %w", err)
		}
		s.file = f
	}
	slices.SortFunc(s.lines, func(a, b sortedLine) int { return a.compare(&b) })
	start, err := s.file.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("trace: sort: %w", err)
	}
	s.runs = append(s.runs, start)
	w := bufio.NewWriterSize(s.file, runBytes)
	encoder := gob.NewEncoder(w)
	for i := range s.lines {
		if err := encoder.Encode(&s.lines[i]); err != nil {
			return fmt.Errorf("trace: sort: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("trace: sort: %w", err)
	}
	clear(s.lines)
	s.lines, s.bytes = s.lines[:0], 0
	return nil
}

// finish prepares the merge of the runs after all lines are read.
func (s *Sorted) finish() error {
	s.whole = true
	slices.SortFunc(s.lines, func(a, b sortedLine) int { return a.compare(&b) })
	for i, start := range s.runs {
		end := int64(math.MaxInt64)
		if i+1 < len(s.runs) {
			end = s.runs[i+1]
		}
		r := &run{from: gob.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(s.file, start, end-start), runBytes))}
		if err := r.next(); err != nil {
			return fmt.Errorf("trace: sort: %w", err)
		}
		s.merged = append(s.merged, r)
	}
	heap.Init(&s.merged)
	return nil
}

// advance selects the earliest line of all runs.
func (s *Sorted) advance() error {
	if len(s.merged) == 0 || len(s.lines) > 0 && s.lines[0].compare(&s.merged[0].line) < 0 {
		if len(s.lines) == 0 {
			return io.EOF
		}
		s.current = s.lines[0]
		s.lines[0] = sortedLine{} // release its text
		s.lines = s.lines[1:]
		return nil
	}
	first := s.merged[0]
	s.current = first.line
	switch err := first.next(); {
	case errors.Is(err, io.EOF):
		heap.Pop(&s.merged)
	case err != nil:
		return fmt.Errorf("trace: sort: %w", err)
	default:
		heap.Fix(&s.merged, 0)
	}
	return nil
}

// Close ends reading and removes the temporary file.
func (s *Sorted) Close() error {
	err := s.from.Close()
	if s.file != nil {
		err = errors.Join(err, s.file.Close(), os.Remove(s.file.Name()))
		s.file = nil
	}
	return err
}

type run struct {
	from *gob.Decoder
	line sortedLine // next line
}

// next reads a line. It returns io.EOF at the end.
func (r *run) next() error {
	r.line = sortedLine{} // gob omits zeros
	return r.from.Decode(&r.line)
}

// A runHeap orders runs by their next line.
type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return h[i].line.compare(&h[j].line) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
