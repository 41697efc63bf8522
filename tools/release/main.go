// SPDX-License-Identifier: Apache-2.0

// Release makes a version of mete for scripts/release. It works in a temporary clone. Only at the end, it adds the
// tags and the folder dist/VERSION to the repository, or neither. The same commit gives the same bytes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// A release is a version that is being made.
type release struct {
	version string
	root    string // the maintainer's repository
	work    string // a temporary directory for the next three
	source  string // a clone of root, with the released commit
	out     string // the files to publish

	modulePath string    // of the root module
	commit     string    // the released commit
	time       time.Time // of the commit that the release starts from
	env        []string  // of git and go
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("want one argument, the version, such as v1.2.3")
	}
	r := &release{version: args[0]}
	if err := r.check(ctx); err != nil {
		return err
	}

	if r.work, err = os.MkdirTemp("", "mete-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	r.source, r.out = filepath.Join(r.work, "source"), filepath.Join(r.work, "out")
	for _, dir := range []string{r.out, r.temp()} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"pin and tag the modules", r.tagModules},
		{"build", r.build},
		{"write checksums", r.writeChecksums},
		{"add the tags and the folder", r.publish},
	} {
		fmt.Printf("release %s: %s\n", r.version, step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	fmt.Printf("release %s: done: %s, and %d tags at commit %.12s; to publish them, see doc/releasing.md\n",
		r.version, r.folder(), len(published), r.commit)
	return nil
}

func (r *release) folder() string { return filepath.Join(r.root, "dist", r.version) }

// build builds and packs the programs of all platforms.
func (r *release) build(ctx context.Context) error {
	var programs []*program
	for _, platform := range platforms {
		fmt.Printf("release %s: build for %s/%s\n", r.version, platform.os, platform.arch)
		p, err := r.buildProgram(ctx, platform)
		if err != nil {
			return err
		}
		if err := r.writeArchive(p); err != nil {
			return err
		}
		if err := r.writeSBOM(p); err != nil {
			return err
		}
		programs = append(programs, p)
	}
	fmt.Printf("release %s: pack packages and the image\n", r.version)
	manual, err := r.writeManual(ctx, programs)
	if err != nil {
		return err
	}
	if err := r.writePackages(programs, manual); err != nil {
		return err
	}
	return r.writeImage(programs)
}

// publish adds the folder and the tags to the repository, or neither.
func (r *release) publish(ctx context.Context) error {
	dist := filepath.Dir(r.folder())
	err := os.CopyFS(r.folder(), os.DirFS(r.out))
	if err == nil {
		args := []string{"fetch", "--quiet", "--atomic", "--no-tags", r.source}
		for _, tag := range r.tags() {
			args = append(args, "refs/tags/"+tag+":refs/tags/"+tag)
		}
		_, err = r.git(ctx, r.root, args...)
	}
	if err != nil {
		err = errors.Join(err, r.removeTags(context.WithoutCancel(ctx)), os.RemoveAll(r.folder()))
		os.Remove(dist) // only if it is empty
	}
	return err
}

// removeTags removes the tags that an interrupted fetch added to the repository.
func (r *release) removeTags(ctx context.Context) error {
	text, err := r.git(ctx, r.root, "tag", "--list", "--points-at", r.commit)
	if err != nil {
		return nil // the repository does not have the commit
	}
	if tags := strings.Fields(text); len(tags) > 0 {
		_, err = r.git(ctx, r.root, append([]string{"tag", "--delete"}, tags...)...)
	}
	return err
}
