// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/subject/inpostgres"
)

// script makes a program of a few shell commands.
func script(t *testing.T, name, commands string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+commands), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// task is of the scenario that denies.
func task() (contest.Task, inpostgres.Place) {
	sc := scenarios[len(scenarios)-1]
	return contest.Task{Scenario: sc.Scenario, Callers: 3, Time: time.Second},
		inpostgres.Place{URL: "postgres://nowhere", Logged: sc.logged, Connections: 2}
}

// npm succeeds if the files of the package are present.
const npm = `test "$1" = ci && test -s package.json && test -s package-lock.json && test -s measure.mjs`

// TestFlexible has a program in the place of Node.js, which tells what it was
// told.
func TestFlexible(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	f := &flexible{npm: script(t, "npm", npm), node: script(t, "node", `
if [ "$1" = --version ]; then echo v0.0.0; exit; fi
echo "$*" > `+told+`
echo '{"elapsed": 2000000000, "latencies": [[1000, 90], [5000, 10]]}'`)}
	defer f.remove()
	work, at := task()
	s, err := f.turn(t.Context(), work, at)
	if err != nil {
		t.Fatal(err)
	}
	if s.Takes != 50 || s.P50 < 1000 || s.P50 > 1100 || s.P99 != 5000 {
		t.Errorf("sample: %+v, want 50 takes/s of 1 and 5 µs", s)
	}
	got, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	want := `measure.mjs {"url":"postgres://nowhere","logged":true,"connections":2,"capacity":1,"window":86400,` +
		`"keys":1,"calls":1,"callers":3,"wanted":false,"warmUp":250,"time":1000}`
	if strings.TrimSpace(string(got)) != want {
		t.Errorf("it was told %s, want %s", got, want)
	}
	if f.version != "; Node.js v0.0.0" {
		t.Errorf("version: %q", f.version)
	}
	f.remove()
	if _, err := os.Stat(f.dir); !os.IsNotExist(err) {
		t.Errorf("what was installed is still there: %v", err)
	}
}

func TestFlexibleFails(t *testing.T) {
	says := func(what string) string {
		return fmt.Sprintf("[ \"$1\" = --version ] || { %s; }", what)
	}
	for _, c := range []struct{ name, npm, node, want string }{
		{"installing", "echo no network >&2; exit 1", says("true"), "no network"},
		{"measuring", npm, says("echo 'take user:00000000000: wrong answer' >&2; exit 1"), "wrong answer"},
		{"no figures", npm, says(`echo '{"elapsed": 1, "latencies": []}'`), "measured nothing"},
		{"not JSON", npm, says("echo hello"), `"hello\n"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &flexible{npm: script(t, "npm", c.npm), node: script(t, "node", c.node+"\n")}
			defer f.remove()
			work, at := task()
			for range 2 { // it is not installed again
				if s, err := f.turn(t.Context(), work, at); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("turn: %+v, %v, want an error with %s", s, err, c.want)
				}
			}
		})
	}
}

func TestFlexibleNeedsNode(t *testing.T) {
	f := &flexible{npm: "no-such-npm", node: "no-such-node"}
	work, at := task()
	if _, err := f.turn(t.Context(), work, at); err == nil || !strings.Contains(err.Error(), "Node.js") {
		t.Errorf("turn without Node.js: %v, want it to say so", err)
	}
}

// TestLockNamesNoRegistry lets npm use the registry of its settings.
func TestLockNamesNoRegistry(t *testing.T) {
	lock, err := flexibleFiles.ReadFile("flexible/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{`"resolved"`, "http:", "https:"} {
		if strings.Contains(string(lock), not) {
			t.Errorf("package-lock.json has %s", not)
		}
	}
}
