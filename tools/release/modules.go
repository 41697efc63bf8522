// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// published are the directories of the modules that get a tag. Each module comes after its dependencies.
var published = []string{".", "guard", "aitokens", "geoip", "grpclimit", "jwtclaims", "pgstore", "policyyaml", "envoyapi", "redisstore", "cmd"}

// tagModules makes the released commit in a clone, with a tag for each published module. The go.mod files
// require the version of each other and replace nothing. The go.sum files have the hashes of that version.
// The go command fetches each module from the clone under its public path.
func (r *release) tagModules(ctx context.Context) error {
	if _, err := r.git(ctx, r.root, "clone", "--quiet", "--local", "--no-tags", r.root, r.source); err != nil {
		return err
	}
	if _, err := r.git(ctx, r.source, "checkout", "--quiet", "--detach", r.commit); err != nil {
		return err
	}
	if err := r.prepareGo(ctx); err != nil {
		return err
	}
	if _, err := r.git(ctx, r.source, "commit", "--quiet", "--allow-empty", "-m", "release "+r.version); err != nil {
		return err
	}
	for i, dir := range published {
		if err := r.pin(dir, published[:i]); err != nil {
			return err
		}
		if _, err := r.run(ctx, filepath.Join(r.source, dir), "go", "mod", "tidy"); err != nil {
			return err
		}
		if _, err := r.git(ctx, r.source, "commit", "--quiet", "--all", "--amend", "--allow-empty", "--no-edit"); err != nil {
			return err
		}
		if err := r.tag(ctx, path.Join(dir, r.version)); err != nil {
			return err
		}
	}
	for _, tag := range r.tags() { // now at the last commit
		if err := r.tag(ctx, tag); err != nil {
			return err
		}
	}
	head, err := r.git(ctx, r.source, "rev-parse", "HEAD")
	r.commit = strings.TrimSpace(head)
	return err
}

// prepareGo sets the environment of the go command. It gets its own module cache. It
// reads our modules from the clone, and other modules from the maintainer's cache first.
func (r *release) prepareGo(ctx context.Context) error {
	text, err := r.run(ctx, r.source, "go", "env", "GOMODCACHE", "GOPROXY", "GOSUMDB")
	if err != nil {
		return err
	}
	lines := strings.Split(text, "\n")
	if len(lines) < 3 {
		return fmt.Errorf("go env printed %q, want three lines", text)
	}
	cache, proxy, sums := lines[0], lines[1], lines[2]
	r.env = append(r.env,
		// Nothing that changes the bytes comes from the maintainer, also not by go env -w.
		"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off",
		"GOMODCACHE="+r.moduleCache(), "GOTMPDIR="+r.temp(),
		"GOPROXY=file://"+filepath.ToSlash(filepath.Join(cache, "cache", "download"))+","+proxy,
		"GOSUMDB="+sums,
		"GONOPROXY="+r.modulePath, "GONOSUMDB="+r.modulePath,
		"GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+filepath.ToSlash(r.source)+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://"+r.modulePath,
	)
	return nil
}

func (r *release) moduleCache() string { return filepath.Join(r.work, "modules") }

// temp returns the temporary directory of the go command.
func (r *release) temp() string { return filepath.Join(r.work, "temp") }

// pin writes the go.mod file of the module in dir without replace directives. The file
// may require earlier modules of ours, and no later ones.
func (r *release) pin(dir string, earlier []string) error {
	name := filepath.Join(r.source, dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(path.Join(dir, "go.mod"), text, nil)
	if err != nil {
		return err
	}
	for _, replace := range f.Replace {
		if err := f.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return err
		}
	}
	for _, require := range f.Require {
		required, ours := r.dirOf(require.Mod.Path)
		if !ours {
			continue
		}
		if !slices.Contains(earlier, required) {
			return fmt.Errorf("%s/go.mod requires %s, which is not published before it: see the list in tools/release/modules.go", dir, require.Mod.Path)
		}
		if err := f.AddRequire(require.Mod.Path, r.version); err != nil {
			return err
		}
	}
	f.Cleanup()
	return os.WriteFile(name, modfile.Format(f.Syntax), 0o644)
}

func (r *release) dirOf(modulePath string) (dir string, ours bool) {
	if modulePath == r.modulePath {
		return ".", true
	}
	return strings.CutPrefix(modulePath, r.modulePath+"/")
}

func (r *release) tag(ctx context.Context, name string) error {
	_, err := r.git(ctx, r.source, "tag", "--annotate", "--force", "-m", "mete "+r.version, name)
	return err
}

// git runs git without the maintainer's hooks and signatures.
func (r *release) git(ctx context.Context, dir string, args ...string) (string, error) {
	settings := []string{"-c", "core.hooksPath=" + os.DevNull, "-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false", "-c", "core.autocrlf=input"}
	return r.run(ctx, dir, "git", append(settings, args...)...)
}

// patience is the time that an interrupted program has to end.
const patience = 10 * time.Second

// run runs a program and returns its output. The error includes the standard error.
func (r *release) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // git and go then remove their files
	cmd.WaitDelay = patience
	cmd.Env = append(os.Environ(), r.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s in %s: %w\n%s", strings.Join(cmd.Args, " "), dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
