// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A repository has what scripts/release needs to start: the script and its program.
type repository struct {
	dir, temp string
	t         *testing.T
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{dir: t.TempDir(), temp: t.TempDir(), t: t}
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(r.dir, "tools"), os.DirFS(filepath.Join(top, "tools"))); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"scripts/release": 0o755, "go.mod": 0o644, ".gitignore": 0o644} {
		data, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	r.write("CHANGELOG.md", "# Changelog\n\n## [0.1.0] - 2026-01-02\n")
	r.write("README.md", "# mete\n\n## Install\n\n    apt install ./mete_0.1.0_amd64.deb\n    docker run metehq/mete:v0.1.0\n\n## Next\n\n    echo 9.9.9\n")
	for _, dir := range []string{"memstore", "overrides", "pgstore", "redisstore"} {
		r.write(dir+"/testdata/formats/v0.1.0/answers.jsonl", "")
	}
	r.git("init", "--quiet")
	r.commit()
	return r
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) commit() {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", "all")
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=kim", "-c", "user.email=kim@example.org"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	output, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, output)
	}
	return string(output)
}

// refuses wants scripts/release to fail with a text on standard error, and to leave
// nothing behind.
func (r *repository) refuses(t *testing.T, path, want string, args ...string) {
	t.Helper()
	before := r.state()
	cmd := exec.Command(filepath.Join(r.dir, "scripts", "release"), args...)
	cmd.Env = append(os.Environ(), "PATH="+path, "TMPDIR="+r.temp)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if err == nil || !strings.Contains(stderr.String(), want) {
		t.Errorf("scripts/release %q: %v, with %q on standard error, want a failure with %q", args, err, stderr.String(), want)
	}
	r.isUnchanged(t, before)
}

// state returns the tags of the repository, and its files that are not committed.
func (r *repository) state() string {
	return r.git("show-ref") + r.git("status", "--porcelain", "--ignored")
}

// isUnchanged wants the same state of the repository, and no temporary files.
func (r *repository) isUnchanged(t *testing.T, before string) {
	t.Helper()
	if after := r.state(); after != before {
		t.Errorf("scripts/release changed the repository from\n%s\nto\n%s", before, after)
	}
	left, err := os.ReadDir(r.temp)
	if err != nil || len(left) > 0 {
		t.Errorf("scripts/release left %v in the directory of temporary files (%v)", left, err)
	}
}

// pathWithout returns a PATH with links to what scripts/release runs, except one.
func pathWithout(t *testing.T, missing string) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range []string{"bash", "dirname", "env", "mktemp", "rm", "git", "go"} {
		if tool == missing {
			continue
		}
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRelease_Refuses(t *testing.T) {
	r := newRepository(t)
	path := os.Getenv("PATH")

	t.Run("no version", func(t *testing.T) {
		r.refuses(t, path, "usage: scripts/release VERSION, such as v1.2.3")
	})
	for _, tool := range []string{"git", "go"} {
		t.Run("no "+tool, func(t *testing.T) {
			r.refuses(t, pathWithout(t, tool), "release: "+tool+" not found on the PATH: install "+tool, "v0.1.0")
		})
	}
	for _, version := range []string{"1.2.3", "v1.2", "v1.2.3+build", "v1.2.x", "latest", ""} {
		t.Run("version "+version, func(t *testing.T) {
			r.refuses(t, path, `"`+version+`" is not a version: write vMAJOR.MINOR.PATCH`, version)
		})
	}
	t.Run("another major version", func(t *testing.T) {
		r.refuses(t, path, "version v2.0.0 needs module paths that end in /v2", "v2.0.0")
	})
	t.Run("a file that is not committed", func(t *testing.T) {
		name := filepath.Join(r.dir, "new.go")
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		r.refuses(t, path, "the tree has changes that are not committed: commit, stash or remove them:\n  ?? new.go", "v0.1.0")
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a changed file", func(t *testing.T) {
		r.write("CHANGELOG.md", "# Changelog\n\n## [0.1.0] - 2026-01-03\n")
		r.refuses(t, path, "the tree has changes that are not committed: commit, stash or remove them:\n   M CHANGELOG.md", "v0.1.0")
		r.git("add", "CHANGELOG.md")
		r.refuses(t, path, "the tree has changes that are not committed: commit, stash or remove them:\n  M  CHANGELOG.md", "v0.1.0")
		r.git("reset", "--quiet", "--hard")
	})
	t.Run("a folder of that version", func(t *testing.T) {
		if err := os.MkdirAll(filepath.Join(r.dir, "dist", "v0.1.0"), 0o755); err != nil {
			t.Fatal(err)
		}
		r.refuses(t, path, "dist/v0.1.0 exists: remove it", "v0.1.0")
		if err := os.RemoveAll(filepath.Join(r.dir, "dist")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a version without its formats, changes and commands", func(t *testing.T) {
		r.refuses(t, path, "the tree is not prepared for v0.1.1: do this, commit, and run scripts/release again:\n"+
			"  memstore/testdata/formats/v0.1.1 is missing: run go test -run TestFormats -formats v0.1.1 in memstore\n"+
			"  overrides/testdata/formats/v0.1.1 is missing: run go test -run TestFormats -formats v0.1.1 in overrides\n"+
			"  pgstore/testdata/formats/v0.1.1 is missing: run go test -run TestFormats -formats v0.1.1 in pgstore\n"+
			"  redisstore/testdata/formats/v0.1.1 is missing: run go test -run TestFormats -formats v0.1.1 in redisstore\n"+
			"  CHANGELOG.md has no line ## [0.1.1]: write the section of the version\n"+
			`  README.md names the versions ["0.1.0"] in the commands of ## Install: write 0.1.1 there`, "v0.1.1")
	})
	t.Run("one old install command", func(t *testing.T) {
		r.git("mv", "memstore/testdata/formats/v0.1.0", "memstore/testdata/formats/v0.1.1")
		r.write("README.md", "# mete\n\n## Install\n\n    apt install ./mete_0.1.1_amd64.deb\n    docker run metehq/mete:v0.1.0\n")
		r.commit()
		r.refuses(t, path, `README.md names the versions ["0.1.0" "0.1.1"] in the commands of ## Install: write 0.1.1 there`, "v0.1.1")
		r.refuses(t, path, "memstore/testdata/formats/v0.1.0 is missing", "v0.1.0")
		r.git("reset", "--quiet", "--hard", "HEAD^")
	})
	t.Run("a pre-release of a tree that lacks a module", func(t *testing.T) { // needs no formats
		r.refuses(t, path, "guard/go.mod: no such file or directory", "v0.2.0-rc.1")
	})
	t.Run("a tree that lacks a module", func(t *testing.T) { // found when the work has begun
		r.refuses(t, path, "guard/go.mod: no such file or directory", "v0.1.0")
	})
	t.Run("tags", func(t *testing.T) {
		r.git("tag", "v0.2.0")
		r.git("tag", "redisstore/v0.3.0")
		r.refuses(t, path, "tag v0.2.0 exists: choose a higher version", "v0.2.0")
		r.refuses(t, path, "tag redisstore/v0.3.0 exists: choose a higher version", "v0.3.0")
		r.refuses(t, path, "version v0.1.9 is not above v0.2.0, the latest tag", "v0.1.9")
		r.refuses(t, path, "version v0.2.0-rc.1 is not above v0.2.0, the latest tag", "v0.2.0-rc.1")
	})
}
