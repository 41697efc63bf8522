// SPDX-License-Identifier: Apache-2.0

package logpipe_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/cmd/internal/logpipe"
)

func TestWriter_WritesLinesInOrder(t *testing.T) {
	var out bytes.Buffer
	w := logpipe.New(&out)
	log := slog.New(slog.NewTextHandler(w, nil))
	var want strings.Builder
	for i := range 1000 {
		log.Info("line", "i", i)
		fmt.Fprintf(&want, "i=%d\n", i)
	}
	w.Close(time.Minute)
	var got strings.Builder
	for line := range strings.Lines(out.String()) {
		got.WriteString(line[strings.Index(line, "i="):])
	}
	if got.String() != want.String() {
		t.Errorf("got %d bytes, want the lines in order", got.Len())
	}
	if s := w.Stats(); s != (logpipe.Stats{Lines: 1000}) {
		t.Errorf("got %+v, want 1000 lines and none dropped", s)
	}
}

// If the pipe is blocked, writers continue, excess lines are counted, and Close returns in time.
func TestWriter_NobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, pipe := io.Pipe()
		w := logpipe.New(pipe)
		const lines = 20_000
		var logging sync.WaitGroup
		for range 4 {
			logging.Go(func() {
				for range lines / 4 {
					if n, err := w.Write([]byte("a line of the log\n")); n != 18 || err != nil {
						t.Errorf("got %d, %v, want 18 and no error", n, err)
					}
				}
			})
		}
		logging.Wait()
		if s := w.Stats(); s.Lines != lines || s.Dropped < lines/2 || s.Dropped >= lines {
			t.Errorf("got %+v, want most of %d lines dropped", s, lines)
		}
		begin := time.Now()
		w.Close(time.Second)
		if took := time.Since(begin); took != time.Second {
			t.Errorf("closing took %v, want 1s", took)
		}
		reader.CloseWithError(errors.New("nobody is there")) // lets the goroutine end
		synctest.Wait()
		if s := w.Stats(); s.Dropped != lines {
			t.Errorf("got %+v, want all of them dropped in the end", s)
		}
	})
}

func TestWriter_DropsWhatIsTooLongAndWhatIsTooLate(t *testing.T) {
	var out bytes.Buffer
	w := logpipe.New(&out)
	w.Write(make([]byte, 2<<20))
	w.Write([]byte("short\n"))
	w.Close(time.Minute)
	w.Write([]byte("late\n"))
	w.Close(time.Minute)
	if got := out.String(); got != "short\n" {
		t.Errorf("got %q, want only the short line", got)
	}
	if s := w.Stats(); s != (logpipe.Stats{Lines: 3, Dropped: 2}) {
		t.Errorf("got %+v, want 2 of 3 dropped", s)
	}
}
