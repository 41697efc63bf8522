// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/cli"
	"github.com/metehq/mete/internal/proctest"
	"github.com/rogpeppe/go-internal/txtar"
)

// Every scripted replay reports the same with buckets in Redis, and leaves nothing there.
func TestReplay_TheSameInRedis(t *testing.T) {
	r := proctest.StartRedis(t)
	live := "tb:per-key:k1"
	if _, err := r.Do("SET", live, "1/1@1"); err != nil {
		t.Fatal(err)
	}
	replayAll(t, "redis://"+r.Addr+"?timeout=1m", "replay_*.txt", 8)
	if keys, err := r.Do("KEYS", "*"); err != nil || strings.TrimSpace(keys) != live {
		t.Errorf("keys are left: %q, %v; want the one that was there", keys, err)
	}
}

func TestReplay_TheSameInACluster(t *testing.T) {
	c := proctest.StartCluster(t, 2, 0)
	replayAll(t, "redis+cluster://"+strings.Join(c.Addrs, ",")+"?prefix=traces:&timeout=1m", "replay_[amt]*.txt", 3)
	for _, node := range c.Nodes {
		if n, err := node.Do("DBSIZE"); err != nil || n != "0" {
			t.Errorf("%s keys are left on %s, %v", n, node.Addr, err)
		}
	}
}

// replayAll runs the replays of the scripts that match, at least so many, in
// memory and with the store.
func replayAll(t *testing.T, store, pattern string, least int) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob(filepath.Join(here, "testdata/script", pattern))
	if err != nil {
		t.Fatal(err)
	}
	replays := 0
	for _, script := range scripts {
		text, err := txtar.ParseFile(script)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := txtar.Write(text, dir); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		for line := range strings.Lines(string(text.Comment)) {
			args, ok := strings.CutPrefix(strings.TrimSpace(line), "exec mete ")
			if !ok || !strings.HasPrefix(args, "replay ") || strings.ContainsAny(args, "'<>|") {
				continue
			}
			replays++
			fields := strings.Fields(args)
			want := output(t, fields...)
			if got := output(t, append(fields, "--store", store)...); got != want {
				t.Errorf("%s: mete %s: in %s\n%s\nin memory\n%s", filepath.Base(script), args, store, got, want)
			}
		}
	}
	if replays < least {
		t.Errorf("only %d replays were found in the scripts", replays)
	}
}

// elapsed is the one line of a report that differs from replay to replay.
var elapsed = regexp.MustCompile(`replayed in .*`)

// output returns the standard output of mete, then its errors.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return elapsed.ReplaceAllString(out.String(), "") + errs.String()
}
