// SPDX-License-Identifier: Apache-2.0

// Package logpipe writes log lines asynchronously, so that a blocked pipe or a slow disk never delays a request.
package logpipe

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the queue. Lines that do not fit are dropped and counted.
const (
	maxBytes = 1 << 20
	maxLines = 8192
)

// A Writer is an [io.Writer] that never blocks. Create it with [New]. Each call of Write must be one line;
// concurrent calls are safe.
type Writer struct {
	to io.Writer

	mu     sync.Mutex // guards the fields below
	filled sync.Cond  // signaled when a line arrives or the writer closes
	queue  [][]byte
	bytes  int
	closed bool

	ended          chan struct{} // closed when all lines are written
	lines, dropped atomic.Uint64
}

// Stats counts lines.
type Stats struct {
	Lines   uint64 // all lines
	Dropped uint64 // lines that were not written
}

// New returns a writer that forwards lines to another one. [Writer.Close] ends its goroutine.
func New(to io.Writer) *Writer {
	w := &Writer{to: to, ended: make(chan struct{})}
	w.filled.L = &w.mu
	go w.run()
	return w
}

// Write queues a line and never fails. After Close it drops the line.
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

// run writes queued lines in order until the writer closes. It drops lines that cannot be written.
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

// next waits for a line.
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

// Stats returns the current counts. A line that is being written counts as neither waiting nor dropped.
func (w *Writer) Stats() Stats { return Stats{w.lines.Load(), w.dropped.Load()} }

// Close writes the queued lines, for at most the given time. It may be called more than once.
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
