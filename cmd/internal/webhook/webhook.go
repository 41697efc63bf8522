// SPDX-License-Identifier: Apache-2.0

// Package webhook posts log lines to an HTTP endpoint in batches.
//
// Each request contains JSON lines (application/x-ndjson) and an Idempotency-Key, which its retries repeat. A
// receiver that knows the key should answer 2xx and ignore the batch. With a secret, X-Mete-Signature is "sha256="
// and the HMAC-SHA256 of X-Mete-Timestamp, a period and the body, in hexadecimal.
//
// The queue is bounded. If the endpoint is slow or down, the oldest lines are dropped and counted; writers never
// wait.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// maxLineBytes bounds a line. Longer lines are dropped.
	maxLineBytes = 16 << 10

	requestTimeout = 30 * time.Second
)

// Config configures a [Sender]. URL, Batch, Interval, Queue, Drain and Log are required.
type Config struct {
	URL     string
	Headers map[string]string // of each request
	Secret  []byte            // for the signature; empty: no signature

	Batch    int           // maximum lines per request
	Interval time.Duration // longest wait for a full batch
	Queue    int           // maximum queued lines
	Drain    time.Duration // time for the remaining lines at shutdown

	Log *slog.Logger
}

// A Sender posts lines. Create it with [New]. It is safe for concurrent use.
type Sender struct {
	config Config
	client *http.Client
	random func() float64
	filled chan struct{} // receives a value when a batch is full

	mu    sync.Mutex // guards the fields below
	lines [][]byte   // oldest first
	begun *batch     // sent without a response before shutdown; nil for none
	stats Stats
}

// Stats counts lines since New.
type Stats struct {
	Sent    uint64 // lines that the endpoint accepted
	Dropped uint64 // lines that did not fit into the queue
	Failed  uint64 // lines that the endpoint rejected or did not accept in time
	Waiting int    // lines in the queue
}

// New returns a sender. [Sender.Run] must run to send lines.
func New(c Config) *Sender {
	return &Sender{config: c, client: newClient(), random: randomPart, filled: make(chan struct{}, 1)}
}

// Write queues one line from a [log/slog] handler. It never fails and never blocks.
func (s *Sender) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(line) > maxLineBytes {
		s.stats.Dropped++
		return len(line), nil
	}
	if len(s.lines) >= s.config.Queue {
		s.lines[0] = nil
		s.lines = s.lines[1:]
		s.stats.Dropped++
	}
	s.lines = append(s.lines, slices.Clone(line))
	if len(s.lines) >= s.config.Batch {
		select {
		case s.filled <- struct{}{}:
		default: // it is known already
		}
	}
	return len(line), nil
}

func (s *Sender) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Waiting = len(s.lines)
	return stats
}

// Run posts batches until ctx ends, and then the remaining lines until the drain time ends. Lines that remain
// after that count as failed, and Run logs their number.
func (s *Sender) Run(ctx context.Context) {
	ticker := time.NewTicker(s.config.Interval)
	defer ticker.Stop()
	for {
		least := s.config.Batch
		select {
		case <-ctx.Done():
			s.drain(ctx)
			return
		case <-ticker.C:
			least = 1 // the first batch need not be full
		case <-s.filled: // perhaps by lines that were sent in the meantime
		}
		for ; ctx.Err() == nil; least = s.config.Batch {
			batch := s.next(least)
			if batch == nil {
				break
			}
			s.postOrKeep(ctx, batch)
		}
	}
}

// postOrKeep posts a batch. If ctx ends first, the next call of next returns it again, because a retry needs the
// same key and lines.
func (s *Sender) postOrKeep(ctx context.Context, b *batch) {
	if !s.post(ctx, b) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun = b
	}
}

func (s *Sender) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Drain)
	defer cancel()
	for ctx.Err() == nil {
		batch := s.next(1)
		if batch == nil {
			return
		}
		s.postOrKeep(ctx, batch)
	}
	s.mu.Lock()
	left := len(s.lines)
	if s.begun != nil {
		left += len(s.begun.lines)
	}
	s.lines, s.begun, s.stats.Failed = nil, nil, s.stats.Failed+uint64(left)
	s.mu.Unlock()
	if left > 0 {
		s.config.Log.Error("denial webhook stopped, lines lost", "lines", left)
	}
}

// A batch contains the lines of one request and its retries.
type batch struct {
	id    string
	lines [][]byte
}

// next takes a batch from the queue. It returns nil if the queue has fewer lines than least.
func (s *Sender) next(least int) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.begun; b != nil {
		s.begun = nil
		return b
	}
	n := min(len(s.lines), s.config.Batch)
	if n < least {
		return nil
	}
	b := newBatch(slices.Clone(s.lines[:n]))
	s.lines = slices.Clone(s.lines[n:]) // release the array
	return b
}

func (s *Sender) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// DurationText is a ReplaceAttr function for [log/slog]. It writes durations in JSON as text such as "8s".
func DurationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
