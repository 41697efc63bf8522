// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/topkeys"
)

// A screen has all that a program wrote to its terminal.
type screen struct {
	mu      sync.Mutex
	written strings.Builder
	more    *sync.Cond
	ended   bool
}

// follow reads the terminal until the program ends.
func follow(terminal io.Reader) *screen {
	s := &screen{}
	s.more = sync.NewCond(&s.mu)
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := terminal.Read(b)
			s.mu.Lock()
			s.written.Write(b[:n])
			s.ended = err != nil
			s.mu.Unlock()
			if s.more.Broadcast(); err != nil {
				return
			}
		}
	}()
	return s
}

// wait waits until the program has written text since the last call.
func (s *screen) wait(t *testing.T, text string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.written.String(), text) {
		if s.ended {
			t.Fatalf("the program ended without %q: %q", text, s.written.String())
		}
		s.more.Wait()
	}
	written := s.written.String()
	s.written.Reset()
	return written
}

// mete top runs in a pseudo-terminal: it draws, follows keys and sizes, and leaves the
// terminal as it was.
func TestTop_OnTerminal(t *testing.T) {
	program := proctest.Build(t, "../../mete")
	for _, colors := range []bool{true, false} {
		cmd := exec.CommandContext(t.Context(), program, "top", "--server", topServer(t, httpapi.RoleOperate), "--interval", "1h")
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=", "NO_COLOR=")
		if !colors {
			cmd.Env = append(cmd.Env, "NO_COLOR=1")
		}
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
		if err != nil {
			t.Fatal(err)
		}
		defer terminal.Close()
		press := func(keys string) {
			if _, err := terminal.WriteString(keys); err != nil {
				t.Fatal(err)
			}
		}
		s := follow(terminal)
		list := s.wait(t, "pause")
		if !strings.Contains(list, "\x1b[?1049h") || !strings.Contains(list, "ip:address=192.0.2.1") {
			t.Errorf("the list is not on the screen: %q", list)
		}
		if got := strings.Contains(list, "\x1b[1;31m") || strings.Contains(list, "\x1b[31m"); got != colors {
			t.Errorf("NO_COLOR set: %v, red on the screen: %v: %q", !colors, got, list)
		}
		press("\x1b[B\r")
		s.wait(t, "Block it for an hour")
		press("\x1b")
		s.wait(t, "SHARE")
		press("n")
		s.wait(t, "2001:db8::/64")
		if err := pty.Setsize(terminal, &pty.Winsize{Rows: 12, Cols: 40}); err != nil {
			t.Fatal(err)
		}
		s.wait(t, "…")
		press("q")
		s.wait(t, "\x1b[?1049l")
		if err := cmd.Wait(); err != nil {
			t.Errorf("mete top: %v", err)
		}
	}
}

// The details of a key show the slots that requests hold.
func TestTop_SlotsOnTerminal(t *testing.T) {
	lim, url := serveTop(t, httpapi.RoleOperate, `{"rules": [{"name": "jobs", "limit_keys": ["query:tenant"], "algorithm": "concurrency", "max": 2, "lease": "24h"}]}`,
		func(tr *topkeys.Tracker, now bucket.Instant) {
			tr.Record(now, topkeys.KindDenied, "jobs", "jobs:tenant=acme", time.Second)
		})
	d, err := lim.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"query:tenant": "acme"}})
	if err != nil || !d.Allowed {
		t.Fatalf("%+v, error %v", d, err)
	}
	cmd := exec.CommandContext(t.Context(), proctest.Build(t, "../../mete"), "top", "--server", url, "--interval", "1h")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	s := follow(terminal)
	s.wait(t, "query:tenant=acme")
	for _, step := range [][2]string{{"\x1b[B\r", d.Slots.ID().String() + " ends in "}, {"q", "\x1b[?1049l"}} {
		if _, err := terminal.WriteString(step[0]); err != nil {
			t.Fatal(err)
		}
		s.wait(t, step[1])
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("mete top: %v", err)
	}
}
