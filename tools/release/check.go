// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// check finds the repository and rejects versions that cannot be made. It changes nothing.
func (r *release) check(ctx context.Context) error {
	if err := checkVersion(r.version); err != nil {
		return err
	}
	top, err := r.git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r.root = strings.TrimSpace(top)
	goMod, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return err
	}
	r.modulePath = modfile.ModulePath(goMod)
	if err := r.checkClean(ctx); err != nil {
		return err
	}
	if err := r.checkTags(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(r.folder()); err == nil {
		return fmt.Errorf("%s exists: remove it and run scripts/release again", r.folder())
	}
	if err := r.checkPrepared(); err != nil {
		return err
	}
	return r.readHead(ctx)
}

// checkVersion rejects versions that do not fit the module paths of this tree.
func checkVersion(version string) error {
	switch {
	case !semver.IsValid(version) || semver.Canonical(version) != version:
		return fmt.Errorf("%q is not a version: write vMAJOR.MINOR.PATCH, such as v1.2.3 or v1.3.0-rc.1", version)
	case semver.Major(version) != "v0" && semver.Major(version) != "v1":
		return fmt.Errorf("version %s needs module paths that end in /%s: choose a v0 or v1 version, or run scripts/rename-module first",
			version, semver.Major(version))
	}
	return nil
}

func (r *release) checkClean(ctx context.Context) error {
	status, err := r.git(ctx, r.root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status == "" {
		return nil
	}
	changes := strings.Split(strings.TrimRight(status, "\n"), "\n")
	const shown = 5
	list := strings.Join(changes[:min(len(changes), shown)], "\n  ")
	if more := len(changes) - shown; more > 0 {
		list += fmt.Sprintf("\n  and %d more", more)
	}
	return fmt.Errorf("the tree has changes that are not committed: commit, stash or remove them:\n  %s", list)
}

// checkTags rejects a version unless it is above all tags, including the tags of single modules.
func (r *release) checkTags(ctx context.Context) error {
	text, err := r.git(ctx, r.root, "tag", "--list")
	if err != nil {
		return err
	}
	existing := strings.Fields(text)
	for _, tag := range r.tags() {
		if slices.Contains(existing, tag) {
			return fmt.Errorf("tag %s exists: choose a higher version; a tag that was never pushed can go: git tag -d %s", tag, tag)
		}
	}
	latest := ""
	for _, tag := range existing {
		if semver.IsValid(tag) && semver.Compare(tag, latest) > 0 {
			latest = tag
		}
	}
	if semver.Compare(r.version, latest) <= 0 {
		return fmt.Errorf("version %s is not above %s, the latest tag: choose a higher version", r.version, latest)
	}
	return nil
}

// formatDirs are the packages that keep the stored formats of every version for the tests of upgrades.
var formatDirs = []string{"memstore", "overrides", "pgstore", "redisstore"}

// A command in the section Install of README.md, and a version in it.
var (
	installCommand = regexp.MustCompile(`(?m)^    .*$`)
	installVersion = regexp.MustCompile(`\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?`)
)

// checkPrepared rejects a version without its stored formats, its section of the
// changelog, or its install commands in README.md. A pre-release needs none of them.
func (r *release) checkPrepared() error {
	if semver.Prerelease(r.version) != "" {
		return nil
	}
	var missing []string
	for _, dir := range formatDirs {
		formats := path.Join(dir, "testdata", "formats", r.version)
		if entries, err := os.ReadDir(filepath.Join(r.root, formats)); err != nil || len(entries) == 0 {
			missing = append(missing, fmt.Sprintf("%s is missing: run go test -run TestFormats -formats %s in %s", formats, r.version, dir))
		}
	}
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	heading := "## [" + r.number() + "]"
	if !strings.Contains("\n"+string(changelog), "\n"+heading) {
		missing = append(missing, fmt.Sprintf("CHANGELOG.md has no line %s: write the section of the version", heading))
	}
	readme, err := os.ReadFile(filepath.Join(r.root, "README.md"))
	if err != nil {
		return err
	}
	_, install, _ := strings.Cut(string(readme), "\n## Install\n")
	install, _, _ = strings.Cut(install, "\n## ")
	named := installVersion.FindAllString(strings.Join(installCommand.FindAllString(install, -1), "\n"), -1)
	slices.Sort(named)
	if named = slices.Compact(named); !slices.Equal(named, []string{r.number()}) {
		missing = append(missing, fmt.Sprintf("README.md names the versions %q in the commands of ## Install: write %s there", named, r.number()))
	}
	if len(missing) > 0 {
		return fmt.Errorf("the tree is not prepared for %s: do this, commit, and run scripts/release again:\n  %s", r.version, strings.Join(missing, "\n  "))
	}
	return nil
}

// readHead reads the commit that the release starts from. The released commit and tags have its committer and
// time, and so are equal on every machine.
func (r *release) readHead(ctx context.Context) error {
	text, err := r.git(ctx, r.root, "log", "-1", "--format=%H%n%cn%n%ce%n%cI")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 4 {
		return fmt.Errorf("git log printed %q, want commit, name, address and time", text)
	}
	r.commit = lines[0]
	if r.time, err = time.Parse(time.RFC3339, lines[3]); err != nil {
		return err
	}
	r.time = r.time.UTC()
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		r.env = append(r.env, "GIT_"+role+"_NAME="+lines[1], "GIT_"+role+"_EMAIL="+lines[2], "GIT_"+role+"_DATE="+lines[3])
	}
	return nil
}

// tags returns the tags of the published modules, in the order to push them.
func (r *release) tags() []string {
	var tags []string
	for _, dir := range published {
		tags = append(tags, path.Join(dir, r.version))
	}
	return tags
}
