// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/tools/internal/git"
)

func TestCheckMessage(t *testing.T) {
	for _, tt := range []struct {
		subject, body string
		want          string // part of the errors; empty for none
	}{
		{"memstore: keep shards small", "Large shards hold the lock for too long.", ""},
		{"cmd/internal/server, doc: report both addresses", "Scripts read them.", ""},
		{".ci: print the slowest packages", "They take most of the time.", ""},
		{"CONTRIBUTING.md: explain ceilings", "They were unknown.", ""},
		{"memstore: keep shards small; evict old keys", "Reason.", "several changes"},
		{"memstore: keep shards small.", "Reason.", "period"},
		{"memstore: Keep shards small", "Reason.", "verb"},
		{"memstore:keep shards small", "Reason.", "verb"},
		{"keep shards small", "Reason.", "verb"},
		{"Keep shards small: a fix", "Reason.", "verb"},
		{"fixup! memstore: keep shards small", "Reason.", "verb"},
		{"memstore: keep " + strings.Repeat("é", 85), "Reason.", ""},
		{"memstore: keep " + strings.Repeat("é", 86), "Reason.", "101 characters"},
		{"memstore: keep shards small", "\n \n", "body"},
		{"", "", "verb"},
	} {
		got := fmt.Sprint(checkMessage(tt.subject, tt.body))
		if (got == "[]") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%q, %q: got %s, want %q", tt.subject, tt.body, got, tt.want)
		}
	}
}

// check reads the commits after the base, without merges, and all commits of a
// shallow clone.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, key := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(key, "test@example.org")
	}
	mustGit := func(args ...string) string {
		t.Helper()
		out, err := git.Run(dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	commit := func(message string) {
		t.Helper()
		mustGit("commit", "--quiet", "--allow-empty", "--message="+message)
	}
	mustGit("init", "--quiet", "--initial-branch=main")
	commit("Old; and bad.")
	base := mustGit("rev-parse", "HEAD")
	commit("memstore: keep shards small\n\nReason.")
	mustGit("checkout", "--quiet", "-b", "other")
	commit("policy: read; and write\n\nReason.")
	mustGit("checkout", "--quiet", "main")
	mustGit("merge", "--quiet", "--no-ff", "--message=Merge other", "other")

	found, err := check(dir, base)
	if err != nil || len(found) != 1 || !strings.Contains(found[0], `"policy: read; and write"`) {
		t.Errorf("after the base: got %q, %v, want the subject with a semicolon", found, err)
	}

	shallow := filepath.Join(t.TempDir(), "shallow")
	mustGit("clone", "--quiet", "--depth=2", "file://"+dir, shallow)
	found, err = check(shallow, base)
	if err != nil || len(found) != 1 {
		t.Errorf("a shallow clone without the base: got %q, %v, want one error", found, err)
	}
	if _, err := check(t.TempDir(), base); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("no repository: got error %v", err)
	}
}
