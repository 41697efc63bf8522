// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"log"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/metehq/mete"
)

// errorInterval is the shortest time between two log lines about one kind of error. Without it, an upstream that
// is down would log one line per request.
const errorInterval = 10 * time.Second

// limitErrors returns a function that logs errors of one kind. It logs the first error immediately, and then at most
// one line per errorInterval with the number of errors. It logs nothing about the request.
//
// An error that only reports an open circuit breaker has no cause. limitErrors counts it, and logs the last error
// that has a cause.
func limitErrors(log *slog.Logger, event string, attrs ...any) func(error) {
	log = log.With(attrs...)
	var (
		mu    sync.Mutex // guards the variables below
		last  time.Time
		count int
		cause error
	)
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		count++
		if e, ok := errors.AsType[*mete.StoreError](err); !ok || e.Store != "guard" || cause == nil {
			cause = err
		}
		if now := time.Now(); now.Sub(last) >= errorInterval {
			log.Error(event, "err", cause, "times", count)
			last, count = now, 0
		}
	}
}

// newErrorLog returns a log for net/http. net/http logs problems of single connections with the address of the
// client. The returned log removes addresses, and writes at most one line per errorInterval, except panics.
func newErrorLog(logger *slog.Logger) *log.Logger {
	return log.New(&errorLog{log: logger}, "", 0)
}

type errorLog struct {
	log *slog.Logger

	mu    sync.Mutex // guards the fields below
	last  time.Time
	count int
}

// clientAddress matches a client address in a message of net/http.
var clientAddress = regexp.MustCompile(`(\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:.%\w]+\]):\d+`)

func (e *errorLog) Write(p []byte) (int, error) {
	text := clientAddress.ReplaceAllString(strings.TrimSuffix(string(p), "\n"), "a client")
	if strings.HasPrefix(text, "http: panic") || strings.HasPrefix(text, "http2: panic") {
		e.log.Error(text)
		return len(p), nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	if now := time.Now(); now.Sub(e.last) >= errorInterval {
		e.log.Warn(text, "times", e.count)
		e.last, e.count = now, 0
	}
	return len(p), nil
}
