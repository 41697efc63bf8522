// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"archive/zip"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// contents are the files of every archive beside the program.
var contents = []string{"CHANGELOG.md", "LICENSE", "README.md", "THIRD_PARTY_LICENSES"}

// linuxContents are the files of archives for Linux alone, for doc/deploy.md.
var linuxContents = []string{
	"examples/deploy/systemd/mete.service", "examples/deploy/systemd/mete.yaml", "examples/deploy/systemd/policy.yaml",
}

// testArchive unpacks archives, and runs the program of this machine.
func (r release) testArchive(t *testing.T) {
	dir := r.unpack(t)
	if got := run(t, dir, nil, "./mete", "version"); !r.isStamped(got) {
		t.Errorf("mete version prints %q, want the version and the commit", got)
	}
	for _, name := range slices.Concat(contents, linuxContents) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	notices, err := os.ReadFile(filepath.Join(dir, "THIRD_PARTY_LICENSES"))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"the Go standard library: LICENSE", "github.com/redis/rueidis v1"} {
		if !strings.Contains(string(notices), of) {
			t.Errorf("THIRD_PARTY_LICENSES has nothing of %q", of)
		}
	}
	z, err := zip.OpenReader(r.path("mete_0.9.0-rc.1_windows_arm64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var got []string
	for _, f := range z.File {
		got = append(got, f.Name)
	}
	slices.Sort(got)
	if want := append(slices.Clone(contents), "mete.exe"); !slices.Equal(got, want) {
		t.Errorf("the zip file has %q, want %q", got, want)
	}
}

// unpack unpacks the archive for this machine.
func (r release) unpack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, nil, "tar", "-xzf", r.path("mete_0.9.0-rc.1_linux_"+runtime.GOARCH+".tar.gz"))
	return dir
}

// testSBOM wants a package for each module in the program, and for Go.
func (r release) testSBOM(t *testing.T) {
	f, err := os.Open(r.path("mete_0.9.0-rc.1_linux_" + runtime.GOARCH + ".spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := spdxjson.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range doc.Packages {
		got = append(got, p.PackageName+"@"+p.PackageVersion)
		if want := "pkg:golang/" + strings.ToLower(p.PackageName) + "@" + p.PackageVersion; p.PackageExternalReferences[0].Locator != want {
			t.Errorf("%s has the purl %s, want %s", p.PackageName, p.PackageExternalReferences[0].Locator, want)
		}
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	info, err := buildinfo.ReadFile(filepath.Join(r.unpack(t), "mete"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{info.Main.Path + "@" + version, "stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+"@"+m.Version)
		if m.Replace != nil || strings.HasPrefix(m.Path, module) && m.Version != version {
			t.Errorf("the program has %s %s, want a released version", m.Path, m.Version)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the SBOM has\n%q, want\n%q", got, want)
	}
}
