// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newUnpublished returns a release that lacks only its last step. Its tags are in a
// clone, and one file waits for the folder of the version.
func newUnpublished(t *testing.T) *release {
	t.Helper()
	r := &release{version: "v0.1.0", root: t.TempDir(), source: filepath.Join(t.TempDir(), "source"), out: t.TempDir(),
		env: []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_AUTHOR_NAME=kim", "GIT_AUTHOR_EMAIL=kim@example.org",
			"GIT_COMMITTER_NAME=kim", "GIT_COMMITTER_EMAIL=kim@example.org"}}
	git := func(dir string, args ...string) string {
		t.Helper()
		text, err := r.git(t.Context(), dir, args...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	git(r.root, "init", "--quiet")
	git(r.root, "commit", "--quiet", "--allow-empty", "-m", "all")
	git(r.root, "clone", "--quiet", r.root, r.source)
	git(r.source, "commit", "--quiet", "--allow-empty", "-m", "release")
	for _, tag := range r.tags() {
		if err := r.tag(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	r.commit = strings.TrimSpace(git(r.source, "rev-parse", "HEAD"))
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

// state returns the tags and the files of the repository.
func (r *release) state(t *testing.T) (tags, files []string) {
	t.Helper()
	text, err := r.git(t.Context(), r.root, "tag", "--list")
	if err != nil {
		t.Fatal(err)
	}
	files, err = filepath.Glob(filepath.Join(r.root, "dist", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(r.root, "dist")); err == nil && len(files) == 0 {
		files = append(files, "dist")
	}
	return strings.Fields(text), files
}

func TestPublish(t *testing.T) {
	r := newUnpublished(t)
	if err := r.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tags, files := r.state(t); len(tags) != len(published) || len(files) != 1 {
		t.Errorf("tags %q and files %q, want %d tags and one file", tags, files, len(published))
	}
}

// An interrupted last step removes the folder and the tags that it added.
func TestPublish_Interrupted(t *testing.T) {
	r := newUnpublished(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.publish(ctx); err == nil {
		t.Error("publish succeeded, want the error of the interruption")
	}
	if tags, files := r.state(t); len(tags)+len(files) > 0 {
		t.Errorf("tags %q and files %q, want none", tags, files)
	}
}

// A tag that another program adds meanwhile stays as it is.
func TestPublish_TagExists(t *testing.T) {
	r := newUnpublished(t)
	if _, err := r.git(t.Context(), r.root, "tag", "cmd/v0.1.0"); err != nil {
		t.Fatal(err)
	}
	if err := r.publish(t.Context()); err == nil {
		t.Error("publish succeeded, want the error of the tag")
	}
	if tags, files := r.state(t); len(tags) != 1 || len(files) > 0 {
		t.Errorf("tags %q and files %q, want cmd/v0.1.0 alone", tags, files)
	}
}
