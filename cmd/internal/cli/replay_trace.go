// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	replaying "github.com/metehq/mete/cmd/internal/replay"
)

// open returns the trace and, where it is a file, its size.
func (c *replayCommand) open() (io.ReadCloser, int64, error) {
	if c.trace == "-" {
		return io.NopCloser(c.std.In), 0, nil
	}
	f, err := os.Open(c.trace)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return f, 0, nil
	}
	return f, info.Size(), nil
}

// progress returns nil where nobody would see it, and where it would stand
// between the decisions.
func (c *replayCommand) progress(size int64) *replaying.Progress {
	if !isTerminal(c.std.Err) || c.format == "json" && isTerminal(c.std.Out) {
		return nil
	}
	return replaying.NewProgress(c.std.Err, size, time.Now)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
