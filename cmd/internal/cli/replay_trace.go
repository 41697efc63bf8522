// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"time"

	replaying "github.com/metehq/mete/cmd/internal/replay"
	"golang.org/x/term"
)

// open opens one of the traces.
func (c *replayCommand) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(c.std.In), nil
	}
	return os.Open(name)
}

// size is how many bytes all traces have together, as they are stored, or 0 where
// one of them has no end that is known. One that is not there is an error now, not
// when its turn comes.
func (c *replayCommand) size() (size int64, err error) {
	known := true
	for _, name := range c.traces {
		if name == "-" {
			known = false
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		known = known && info.Mode().IsRegular()
		size += info.Size()
	}
	if !known {
		return 0, nil
	}
	return size, nil
}

// progress returns nil where nobody would see it, and where it would stand
// between the decisions.
func (c *replayCommand) progress(size int64) *replaying.Progress {
	if !isTerminal(c.std.Err) || c.format == "json" && isTerminal(c.std.Out) {
		return nil
	}
	return replaying.NewProgress(c.std.Err, size, time.Now)
}

func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
