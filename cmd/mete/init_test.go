// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// At a terminal mete init asks, shows the default of each question and reads a line.
func TestInit_Terminal(t *testing.T) {
	terminal := startInit(t, t.TempDir())
	for _, step := range []struct{ until, answer string }{
		{"1. Where do requests come from?", ""},
		{"answer [api]: ", ""}, // the default
		{"2. What identifies a client?", ""},
		{"answer [address]: ", "phone"},
		{`by: "phone" is unknown: write address, key, user`, ""},
		{"answer [address]: ", "key"},
		{"3. How many requests may one client make?", ""},
		{"rate, such as 10/1s or 100 per minute [100/1m]: ", "6 per minute"},
		{"at once, after a pause [1]: ", "2"},
		{"4. Where should the counters be stored?", ""},
		{"answer [memory:]: ", ""},
		{"wrote policy.yaml and mete.yaml", ""},
	} {
		terminal.expect(step.until)
		if strings.HasSuffix(step.until, ": ") {
			terminal.send(step.answer + "\n")
		}
	}
	terminal.end(0)
	text, err := os.ReadFile(filepath.Join(terminal.dir, "policy.yaml"))
	if err != nil || !strings.Contains(string(text), "rate: 6/1m\n    burst: 2\n") || !strings.Contains(string(text), `["header:x-api-key"]`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// Ctrl-C and Ctrl-D end the questions, and no file is written.
func TestInit_Terminal_Ends(t *testing.T) {
	for key, want := range map[string]string{"\x03": "interrupted: no file was written", "\x04": "the input ended before the last question"} {
		terminal := startInit(t, t.TempDir())
		terminal.expect("answer [api]: ")
		terminal.send("\n")
		terminal.expect("answer [address]: ")
		terminal.send(key)
		terminal.expect(want)
		terminal.end(2)
		if files, err := os.ReadDir(terminal.dir); err != nil || len(files) > 0 {
			t.Errorf("%v, %v", files, err)
		}
	}
}

// A terminalSession is mete init at a pseudo-terminal.
type terminalSession struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	file *os.File
	out  *bufio.Reader
	seen strings.Builder
}

func startInit(t *testing.T, dir string) *terminalSession {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test program is mete if it is called so.
	link := filepath.Join(t.TempDir(), "mete")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(link, "init")
	cmd.Dir = dir
	f, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s := &terminalSession{t: t, dir: dir, cmd: cmd, file: f, out: bufio.NewReader(f)}
	guard := time.AfterFunc(serverTimeout, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		guard.Stop()
		f.Close()
	})
	return s
}

// expect reads until the terminal shows text.
func (s *terminalSession) expect(text string) {
	s.t.Helper()
	from := s.seen.Len()
	for !strings.Contains(s.seen.String()[from:], text) {
		b, err := s.out.ReadByte()
		if err != nil {
			s.t.Fatalf("%q does not come: %v\n%s", text, err, s.seen.String())
		}
		s.seen.WriteByte(b)
	}
}

func (s *terminalSession) send(text string) {
	s.t.Helper()
	if _, err := s.file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the end of the program.
func (s *terminalSession) end(code int) {
	s.t.Helper()
	for { // a program that cannot write does not end
		if _, err := s.out.ReadByte(); err != nil {
			break
		}
	}
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d\n%s", got, code, s.seen.String())
	}
}
