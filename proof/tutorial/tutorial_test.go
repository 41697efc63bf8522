// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package tutorial follows doc/tutorial.md like a reader.
package tutorial

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

var update = flag.Bool("update", false, "write what the commands print into doc/tutorial.md, where it is not as there")

// patience is how long one command may take.
const patience = 60 * time.Second

func TestMain(m *testing.M) { meted.Main(m) }

// wrapper is mete with other addresses for its own.
const wrapper = `#!/bin/bash
case "$1 $*" in
*--policy*) set -- "$@" ;;
"serve "*) set -- "$@" --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:8081 ;;
"take "*) set -- "$@" --server http://127.0.0.1:8080 ;;
"explain "* | "top "* | "override "* | "reload "*) set -- "$@" --server http://127.0.0.1:8081 ;;
esac
exec '%s' "$@"
`

// ports are those of the tutorial. The test has free ones in their place.
var ports = []string{"8080", "8081", "8088", "3000"}

// A reader has a clone and runs the tutorial's commands in it.
type reader struct {
	t       *testing.T
	clone   string
	shell   *proctest.Process
	keys    *os.File // what is typed
	typed   int      // commands so far
	seen    int      // bytes of the output
	there   *strings.Replacer
	back    *strings.Replacer
	program string // as it was built
}

func newReader(t *testing.T) *reader {
	r := &reader{t: t, clone: t.TempDir(), program: meted.Program(t)}
	var there, back []string
	for _, port := range ports {
		addr := proctest.FreeAddr(t)
		there = append(there, "127.0.0.1:"+port, addr)
		back = append(back, addr, "127.0.0.1:"+port)
	}
	r.there, r.back = strings.NewReplacer(there...), strings.NewReplacer(back...)
	in, keys, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.keys = keys
	cmd := exec.Command("bash", "--norc")
	cmd.Dir, cmd.Stdin = r.clone, in
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "USER=kim", "LC_ALL=C.UTF-8", "GORACE=atexit_sleep_ms=0", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	r.shell = proctest.Start(t, cmd)
	in.Close()
	t.Cleanup(func() { keys.Close() })
	r.copy("examples/gateways/nginx/nginx.conf")
	wrapper := r.there.Replace(fmt.Sprintf(wrapper, r.program))
	if err := os.WriteFile(filepath.Join(r.clone, "wrapper"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	return r
}

// copy puts a file of the repository into the clone.
func (r *reader) copy(name string) {
	text, err := os.ReadFile(filepath.Join(meted.Root(r.t), name))
	if err != nil {
		r.t.Fatal(err)
	}
	to := filepath.Join(r.clone, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(r.there.Replace(string(text))), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// save writes a file that the tutorial shows.
func (r *reader) save(name, text string) {
	if err := os.WriteFile(filepath.Join(r.clone, "hour", name), []byte(r.there.Replace(text)), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// run types a command and returns what it prints, as with the ports of the tutorial.
func (r *reader) run(command string) string {
	r.t.Helper()
	r.typed++
	end := fmt.Sprintf("--- command %d has ended\n", r.typed)
	// The program is built already, as the first command would; and it needs to be told
	// which ports are free.
	command = strings.Replace(command, "go build -o hour/mete ./cmd/mete", "cp wrapper hour/mete", 1)
	if _, err := fmt.Fprintf(r.keys, "%s\nprintf -- '%s'\n", r.there.Replace(command), strings.ReplaceAll(end, "\n", `\n`)); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var printed string
	err := proctest.Poll(ctx, func(context.Context) error {
		printed = r.shell.Output()[r.seen:]
		if !strings.HasSuffix(printed, end) {
			return fmt.Errorf("%s\nhas not ended, and printed\n%s", command, printed)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.seen += len(printed)
	printed = strings.ReplaceAll(strings.TrimSuffix(printed, end), "\r\n", "\n")
	return r.back.Replace(printed)
}

// fence is a block of the document: its language, the name of its file, its text.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)(?: ([a-z.]+))?\n(.*?)^```$")

func TestTutorial(t *testing.T) {
	path := filepath.Join(meted.Root(t), "doc", "tutorial.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newReader(t)
	commands := 0
	done := fence.ReplaceAllStringFunc(string(text), func(block string) string {
		part := fence.FindStringSubmatch(block)
		switch language, name, text := part[1], part[2], part[3]; {
		case name != "":
			r.save(name, text)
		case language == "console":
			var out strings.Builder
			for _, c := range split(text) {
				commands++
				got := r.run(c.line)
				if want := c.printed; !matches(want, got) {
					if !*update {
						t.Errorf("$ %s\nprints\n%s\nand the tutorial says\n%s", c.line, got, want)
					}
					c.printed = got
				}
				out.WriteString("$ " + c.line + "\n" + c.printed)
			}
			return "```console\n" + out.String() + "```"
		default:
			t.Errorf("a block that is neither a file nor commands:\n%s", block)
		}
		return block
	})
	if commands < 20 {
		t.Errorf("%d commands were run: the tutorial has more", commands)
	}
	if *update {
		if err := os.WriteFile(path, []byte(done), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A command is a line after a dollar, and what it prints.
type command struct{ line, printed string }

func split(text string) (list []command) {
	for line := range strings.Lines(text) {
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			list = append(list, command{line: strings.TrimSuffix(typed, "\n")})
			continue
		}
		list[len(list)-1].printed += line
	}
	return list
}

// matches reports whether got is want, in which … stands for anything.
func matches(want, got string) bool {
	parts := strings.Split(strings.TrimRight(want, "\n"), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`).MatchString(strings.TrimRight(got, "\n"))
}
