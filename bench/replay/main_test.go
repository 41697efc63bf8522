// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

// Equal arguments give equal logs with the documented measures.
func TestWriteLog(t *testing.T) {
	var first, second bytes.Buffer
	for _, w := range []io.Writer{&first, &second} {
		if err := writeLog(w, 10_000); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two logs differ")
	}
	lines := strings.Split(strings.TrimSuffix(first.String(), "\n"), "\n")
	logins, clients := 0, map[string]bool{}
	for _, line := range lines {
		address, _, _ := strings.Cut(line, " ")
		clients[address] = true
		if strings.Contains(line, `"POST /login HTTP/1.1"`) {
			logins++
		}
	}
	if len(lines) != 10_000 || len(clients) < 1000 || logins < 100 || logins > 400 {
		t.Errorf("got %d lines of %d clients with %d logins, want 10000, more than 1000, about 200", len(lines), len(clients), logins)
	}
}

// Every subject runs on a short log. The figures have no meaning.
func TestRun(t *testing.T) {
	var out, progress strings.Builder
	if err := run(context.Background(), []string{"-lines", "2000", "-rounds", "1", "-dir", t.TempDir()}, &out, &progress); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2000 lines", "| mete replay, one core ", "| mete replay --old --new, one core ", "| bufio.Scanner, splits fields ", "Target: mete replay, one core at 500000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &out)
		}
	}
}

func TestParse_Mistakes(t *testing.T) {
	for _, args := range [][]string{{"-lines", "0"}, {"-rounds", "0"}, {"x"}, {"-lines", "many"}} {
		if err := run(context.Background(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
}
