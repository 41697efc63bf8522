// SPDX-License-Identifier: Apache-2.0

// Package webhook posts the lines of a log to an HTTP endpoint, in batches.
//
// Each request has a batch of JSON lines (application/x-ndjson), and an Idempotency-Key that its
// retries repeat. A receiver that knows the key answers 2xx and ignores the batch.
// With a secret, X-Mete-Signature is "sha256=" and the HMAC-SHA256 of X-Mete-Timestamp, a period
// and the body, in hexadecimal digits.
//
// The queue is bounded. If the endpoint is slow or down, the oldest lines are dropped and
// counted; no writer waits.
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
	// maxLineBytes bounds a line. A longer one is dropped.
	maxLineBytes = 16 << 10

	// requestTimeout bounds one request.
	requestTimeout = 30 * time.Second
)

// Config configures a [Sender]. URL, Batch, Interval, Queue, Drain and Log are required.
type Config struct {
	URL     string
	Headers map[string]string // of each request
	Secret  []byte            // of the signature; empty: no signature

	Batch    int           // the most lines in one request
	Interval time.Duration // the longest wait of a line for its batch
	Queue    int           // the most lines that wait
	Drain    time.Duration // for the lines that are left when the sender stops

	Log *slog.Logger
}

// A Sender posts lines. It is made by [New], and its methods are safe for concurrent use.
type Sender struct {
	config Config
	client *http.Client
	random func() float64
	filled chan struct{} // gets a value when a batch is full

	mu    sync.Mutex // guards the fields below
	lines [][]byte   // the oldest first
	begun *batch     // it was sent without an answer when the sender stopped; nil for none
	stats Stats
}

// Stats count lines since the sender was made.
type Stats struct {
	Sent    uint64 // in requests that the endpoint accepted
	Dropped uint64 // for which the queue had no room
	Failed  uint64 // that the endpoint refused, or did not accept in time
	Waiting int    // in the queue now
}

// New returns a sender. It sends nothing before [Sender.Run].
func New(c Config) *Sender {
	return &Sender{config: c, client: newClient(), random: randomPart, filled: make(chan struct{}, 1)}
}

// Write queues one line, as a handler of [log/slog] writes it. It never fails and never waits.
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

// Stats returns the counts as they are.
func (s *Sender) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Waiting = len(s.lines)
	return stats
}

// Run posts batches until ctx ends, and then the lines that are left, as long as the drain time
// lasts. Lines that are left after that are logged as a number, and counted as failed.
func (s *Sender) Run(ctx context.Context) {
	ticker := time.NewTicker(s.config.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.drain(ctx)
			return
		case <-ticker.C:
		case <-s.filled:
		}
		for least := 1; ctx.Err() == nil; least = s.config.Batch { // after the first, only full ones
			batch := s.next(least)
			if batch == nil {
				break
			}
			s.postOrKeep(ctx, batch)
		}
	}
}

// postOrKeep posts a batch. If ctx ends before the endpoint accepts or refuses it, next returns
// it again: a retry needs the same key and lines.
func (s *Sender) postOrKeep(ctx context.Context, b *batch) {
	if !s.post(ctx, b) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun = b
	}
}

// drain posts the lines that are left.
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
		s.config.Log.Error("denial webhook stopped: lines lost", "lines", left)
	}
}

// A batch is the lines of one request, with all its retries.
type batch struct {
	id    string
	lines [][]byte
}

// next takes a batch from the queue, nil if it has fewer lines than least.
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
	s.lines = slices.Clone(s.lines[n:]) // the rest of the array can be collected
	return b
}

func (s *Sender) count(change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

// DurationText is a ReplaceAttr of [log/slog] that has durations in JSON as in text: "8s", and
// not nanoseconds.
func DurationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
