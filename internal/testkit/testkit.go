// SPDX-License-Identifier: Apache-2.0

// Package testkit contains helpers for the tests of many packages.
package testkit

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	patience = time.Minute
	interval = 5 * time.Millisecond
)

// A Log is a concurrency-safe log buffer. The zero Log is empty.
type Log struct {
	mu  sync.Mutex // guards the field below
	buf bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// Logger returns a logger that writes text to the log.
func (l *Log) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Count returns the number of occurrences of text.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Eventually waits until check returns no error. After a minute it fails the test with the last error.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	timeout := time.After(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}

// Until waits until ok returns true, and fails the test after a minute.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if !ok() {
			return errors.New("not yet")
		}
		return nil
	})
}
