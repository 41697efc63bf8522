// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"log/slog"
	"strings"
	"sync"
)

// A logBuffer keeps what was logged.
type logBuffer struct {
	mu   sync.Mutex // guards the field below
	text strings.Builder
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
