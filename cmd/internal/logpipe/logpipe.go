// SPDX-License-Identifier: Apache-2.0

// Package logpipe writes lines behind the back of those who log them, so that a
// pipe that nobody reads, or a disk that hangs, stops no request.
package logpipe

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what waits to be written. A line for which there is no room is dropped
// and counted.
const (
	maxBytes = 1 << 20
	maxLines = 8192
)

// A Writer is an [io.Writer] that does not wait for another. It is made by [New],
// and safe for concurrent use where each call of Write is a line.
type Writer struct {
	to io.Writer

	mu     sync.Mutex // guards the fields below
	filled sync.Cond  // there are lines, or there will be no more
	queue  [][]byte
	bytes  int
	closed bool

	ended          chan struct{} // closed when all is written
	lines, dropped atomic.Uint64
}

// Stats count lines.
type Stats struct {
	Lines   uint64 // that were to be written
	Dropped uint64 // of these, lines that were not
}

// New returns a writer to another, with a goroutine that [Writer.Close] ends.
func New(to io.Writer) *Writer {
	w := &Writer{to: to, ended: make(chan struct{})}
	w.filled.L = &w.mu
	go w.run()
	return w
}

// Write takes a line, and never fails. After Close it drops it.
func (w *Writer) Write(line []byte) (int, error) {
	w.lines.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.queue) >= maxLines || w.bytes+len(line) > maxBytes {
		w.dropped.Add(1)
		return len(line), nil
	}
	w.queue = append(w.queue, bytes.Clone(line))
	w.bytes += len(line)
	w.filled.Signal()
	return len(line), nil
}

// run writes lines, in order, until there are no more to come. What cannot be
// written is dropped.
func (w *Writer) run() {
	defer close(w.ended)
	for {
		line, ok := w.next()
		if !ok {
			return
		}
		if _, err := w.to.Write(line); err != nil {
			w.dropped.Add(1)
		}
	}
}

// next waits for the first of the lines.
func (w *Writer) next() (line []byte, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		if w.closed {
			return nil, false
		}
		w.filled.Wait()
	}
	line = w.queue[0]
	w.queue[0] = nil
	if w.queue = w.queue[1:]; len(w.queue) == 0 {
		w.queue = nil
	}
	w.bytes -= len(line)
	return line, true
}

// Stats returns the counts as they are. A line that is being written is neither
// waiting nor dropped.
func (w *Writer) Stats() Stats { return Stats{w.lines.Load(), w.dropped.Load()} }

// Close writes what waits, for as long as patience, and then gives up. It may be
// called more than once.
func (w *Writer) Close(patience time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.filled.Signal()
	w.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ended:
	case <-timer.C:
	}
}
