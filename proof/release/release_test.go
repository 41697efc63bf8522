// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/meted"
)

// version is the one that the tests make.
const version = "v0.9.0-rc.1"

// module is the path of the root module.
const module = "github.com/metehq/mete"

// A release is a repository after scripts/release.
type release struct {
	repository string
	dist       string // the files
	commit     string // that the tags name
}

// path returns the path of a released file.
func (r release) path(name string) string { return filepath.Join(r.dist, name) }

// makeRelease commits a copy of this tree and makes a version of it.
func makeRelease(t *testing.T) release {
	t.Helper()
	r := release{repository: t.TempDir()}
	copyTree(t, r.repository)
	const noConfig = "GIT_CONFIG_GLOBAL=/dev/null" // the user's may sign commits or ignore files
	run(t, r.repository, []string{noConfig}, "git", "init", "--quiet")
	run(t, r.repository, []string{noConfig}, "git", "add", "--all")
	run(t, r.repository, []string{noConfig, "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z"},
		"git", "-c", "user.name=kim", "-c", "user.email=kim@example.org", "commit", "--quiet", "--message", "all")
	run(t, r.repository, nil, "scripts/release", version)
	r.dist = filepath.Join(r.repository, "dist", version)
	r.commit = strings.TrimSpace(run(t, r.repository, nil, "git", "rev-parse", version+"^{commit}"))
	return r
}

// copyTree copies what git tracks or would track.
func copyTree(t *testing.T, to string) {
	t.Helper()
	root := meted.Root(t)
	for name := range strings.SplitSeq(run(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		from := filepath.Join(root, name)
		info, err := os.Lstat(from)
		if name == "" || errors.Is(err, fs.ErrNotExist) { // removed, and not committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, name), data, info.Mode().Perm())
	}
}

func write(t *testing.T, path string, data []byte, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}

// run returns the output of a program, and fails the test if the program fails.
func run(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		cmd.Path = filepath.Join(dir, program)
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

func TestRelease(t *testing.T) {
	r := makeRelease(t)
	t.Run("Files", r.testFiles)
	t.Run("Tags", r.testTags)
	t.Run("Archive", r.testArchive)
	t.Run("SBOM", r.testSBOM)
	t.Run("Modules", r.testModules)
	t.Run("Deb", r.testDeb)
	t.Run("RPM", r.testRPM)
	t.Run("Image", r.testImage)
	t.Run("Again", r.testAgain)
}

// testFiles wants every file that doc/releasing.md lists, and their checksums.
func (r release) testFiles(t *testing.T) {
	want := []string{
		"SHA256SUMS", "mete_0.9.0-rc.1_image.tar",
		"mete_0.9.0-rc.1_amd64.deb", "mete_0.9.0-rc.1_arm64.deb",
		"mete-0.9.0-rc.1-1.x86_64.rpm", "mete-0.9.0-rc.1-1.aarch64.rpm",
	}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64", "windows_arm64"} {
		extension := ".tar.gz"
		if strings.HasPrefix(platform, "windows") {
			extension = ".zip"
		}
		want = append(want, "mete_0.9.0-rc.1_"+platform+extension, "mete_0.9.0-rc.1_"+platform+".spdx.json")
	}
	slices.Sort(want)
	entries, err := os.ReadDir(r.dist)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	slices.Sort(got)
	for _, name := range got {
		if regexp.MustCompile(`[^0-9A-Za-z._-]`).MatchString(name) {
			t.Errorf("the name %s has a character that release pages replace", name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("dist has\n%q, want\n%q", got, want)
	}
	run(t, r.dist, nil, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	if n := strings.Count(run(t, r.dist, nil, "cat", "SHA256SUMS"), "\n"); n != len(want)-1 {
		t.Errorf("SHA256SUMS has %d lines, want one for each of %d files", n, len(want)-1)
	}
	if status := run(t, r.repository, nil, "git", "status", "--porcelain"); status != "" {
		t.Errorf("the tree has changes after the release:\n%s", status)
	}
}

// testTags wants a tag of each published module on one commit, whose only difference
// from its parent is in go.mod and go.sum files.
func (r release) testTags(t *testing.T) {
	var want []string
	for _, dir := range published {
		want = append(want, strings.TrimPrefix(dir+"/"+version, "./"))
	}
	slices.Sort(want)
	if got := strings.Fields(run(t, r.repository, nil, "git", "tag", "--list", "--points-at", r.commit)); !slices.Equal(got, want) {
		t.Errorf("tags %q at the released commit, want %q", got, want)
	}
	changed := strings.Fields(run(t, r.repository, nil, "git", "diff", "--name-only", r.commit+"^", r.commit))
	for _, name := range changed {
		if base := filepath.Base(name); base != "go.mod" && base != "go.sum" {
			t.Errorf("the released commit changes %s, want go.mod and go.sum files only", name)
		}
	}
	if parent, head := run(t, r.repository, nil, "git", "rev-parse", r.commit+"^"), run(t, r.repository, nil, "git", "rev-parse", "HEAD"); parent != head {
		t.Errorf("the parent of the released commit is %s, want HEAD, %s", parent, head)
	}
}

// testAgain makes the version once more from another copy, and wants the same
// bytes.
func (r release) testAgain(t *testing.T) {
	again := makeRelease(t)
	if again.commit != r.commit {
		t.Errorf("the released commit is %s, and %s the second time", r.commit, again.commit)
	}
	if got, want := run(t, again.dist, nil, "cat", "SHA256SUMS"), run(t, r.dist, nil, "cat", "SHA256SUMS"); got != want {
		t.Errorf("checksums are\n%s\nand the second time\n%s", want, got)
	}
}
