// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
)

// newErrorLog returns what net/http complains to. It complains of clients, of each
// of their connections and by their address: what is logged has no address, and of
// all complaints but panics one each complaintInterval.
func newErrorLog(logger *slog.Logger) *log.Logger {
	return log.New(&errorLog{log: logger}, "", 0)
}

type errorLog struct {
	log *slog.Logger

	mu    sync.Mutex // guards the fields below
	last  time.Time
	count int
}

// clientAddress is how net/http names one.
var clientAddress = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:.%\w]+\]):\d+`)

// Write takes one complaint.
func (e *errorLog) Write(p []byte) (int, error) {
	text := clientAddress.ReplaceAllString(strings.TrimSuffix(string(p), "\n"), "a client")
	if strings.HasPrefix(text, "http: panic") || strings.HasPrefix(text, "http2: panic") {
		e.log.Error(text)
		return len(p), nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	if now := time.Now(); now.Sub(e.last) >= complaintInterval {
		e.log.Warn(text, "times", e.count)
		e.last, e.count = now, 0
	}
	return len(p), nil
}
