// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/cli"
)

const (
	replayExamples = "../../../examples/replay/"
	replayDoc      = "replay.md"
)

// speed is the line of a report that differs each time.
var speed = regexp.MustCompile(`replayed in .*\n`)

// The example in doc/replay.md prints what it says there.
func TestDocs_ReplayExample(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(docs, replayDoc))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(replayExamples)
	t.Setenv("COLUMNS", "")
	out, errs, code := run(t, "replay", "--old", "old.yaml", "--new", "new.yaml", "--show-keys", "access.log")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, stderr %q", code, errs)
	}
	var want strings.Builder
	for line := range strings.Lines(speed.ReplaceAllString(out, "")) {
		if line != "\n" {
			line = "    " + line
		}
		want.WriteString(line)
	}
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("doc/%s does not have what is printed:\n%s", replayDoc, &want)
	}
	out, _, _ = run(t, "replay", "--old", "old.yaml", "--new", "new.yaml", "--format", "json", "access.log")
	first, _, _ := strings.Cut(out, "\n")
	last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
	for _, part := range []string{first, strings.SplitAfter(last, `"newly_admitted":2,`)[0]} {
		if !strings.Contains(string(doc), "\n    "+part) {
			t.Errorf("doc/%s does not have the line\n%s", replayDoc, part)
		}
	}
	out, _, _ = run(t, "replay", "--policy", "new.yaml", "--format", "json", "access.log")
	if line := regexp.MustCompile(`(?m)^.*"allowed":false.*$`).FindString(out); !strings.Contains(string(doc), "\n    "+line+"\n") {
		t.Errorf("doc/%s does not have the line\n%s", replayDoc, line)
	}
}

// Flags may stand in any order, before and after the traces.
func TestReplay_CompareForms(t *testing.T) {
	old, after, log := replayExamples+"old.yaml", replayExamples+"new.yaml", replayExamples+"access.log"
	stdin, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--old", old, "--new", after, log},
		{"--old=" + old, "--new=" + after, log},
		{"--new", after, "--old", old, log},
		{log, "--old", old, "--new", after},
		{"--old", old, "--new", after, "-"},
		{"--old", old, "--store", "memory:?max_keys=1000", "--new", after, "--", log},
	} {
		var out, errs strings.Builder
		code := cli.Main(context.Background(), append([]string{"replay"}, args...), cli.Streams{In: strings.NewReader(string(stdin)), Out: &out, Err: &errs})
		if code != 0 || !strings.Contains(out.String(), "newly limited    10  15.87%") || errs.Len() > 0 {
			t.Errorf("%q: code %d\n%s%s", args, code, &out, &errs)
		}
	}
}

func TestReplay_CompareMistakes(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--old old.yaml --new new.yaml", "no trace given to compare old.yaml and new.yaml with"},
		{"--old old.yaml access.log", "--old and --new are required together"},
		{"--new new.yaml access.log", "--old and --new are required together"},
		{"--old old.yaml --new new.yaml --policy p.yaml access.log", "--policy does not go with --old and --new"},
		{"new.yaml access.log --max-newly-limited 1", "--max-newly-limited needs --old and --new"},
	} {
		_, stderr, code := run(t, append([]string{"replay"}, strings.Fields(tt.args)...)...)
		if code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: code %d, stderr %q; want 2 and %q", tt.args, code, stderr, tt.want)
		}
	}
}

// A log in several files, some of them compressed, is that log.
func TestReplay_RotatedLogs(t *testing.T) {
	log, err := os.ReadFile(replayExamples + "access.log")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := strings.Index(string(log[len(log)/2:]), "\n") + len(log)/2 + 1
	older, err := os.Create(filepath.Join(dir, "access.log.1")) // compressed, whatever its name
	if err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(older)
	if _, err := w.Write(log[:at]); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "access.log")
	if err := os.WriteFile(newer, log[at:], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"text", "json"} {
		policy := []string{"replay", "--policy", replayExamples + "new.yaml", "--format", format}
		want, _, _ := run(t, append(policy, replayExamples+"access.log")...)
		got, errs, code := run(t, append(policy, older.Name(), newer)...)
		if format == "text" {
			_, want, _ = strings.Cut(speed.ReplaceAllString(want, ""), "\nfrom ")
			_, got, _ = strings.Cut(speed.ReplaceAllString(got, ""), "\nfrom ")
		}
		if got != want || got == "" || code != 0 {
			t.Errorf("%s: code %d, %s\n%s\nwant\n%s", format, code, errs, got, want)
		}
	}
	if _, errs, code := run(t, "replay", "--policy", replayExamples+"new.yaml", newer, older.Name()); code != 2 || !strings.Contains(errs, "access.log.1: begins before") {
		t.Errorf("the newest first: code %d, %s", code, errs)
	}
}
