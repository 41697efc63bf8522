// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/metehq/mete/cmd/internal/smallfile"
	"github.com/metehq/mete/envoyapi/dropin"
	"github.com/metehq/mete/internal/follow"
)

const (
	// filesInterval is the polling interval of the configuration files.
	filesInterval = time.Second

	// Bounds of the configuration. A ConfigMap of Kubernetes has at most 1 MiB.
	maxFiles     = 4096
	maxFileBytes = 16 << 20
	maxAllBytes  = 64 << 20
)

// A fileSource reads the configuration from the files below a directory.
type fileSource struct {
	dir          string
	ignoreHidden bool
	options      dropin.ConfigOptions
	target       *target
	log          *slog.Logger

	digest  [sha256.Size]byte // of the last contents, valid or not
	refused error             // why the last contents are not active
	read    bool              // digest is set
}

func newFileSource(s *Settings, to *target, log *slog.Logger) *fileSource {
	return &fileSource{
		dir:          filepath.Join(s.Root, s.Subdirectory, s.AppDirectory),
		ignoreHidden: s.IgnoreHidden,
		options:      dropin.ConfigOptions{MergeDomains: s.MergeDomains},
		target:       to,
		log:          log,
	}
}

// load activates the configuration for the first time.
func (f *fileSource) load() error {
	_, err := f.reload()
	return err
}

// run reloads the configuration when a file changes, until ctx ends. The argument err is the result of load.
func (f *fileSource) run(ctx context.Context, err error) {
	loop := follow.Loop{
		Interval: filesInterval,
		Read:     func(context.Context, bool) (bool, error) { return f.reload() },
		Report: func(news follow.News, err error) {
			switch news {
			case follow.NewsFailed:
				f.log.Error("configuration not replaced, old configuration stays active", "directory", f.dir, "err", err)
			case follow.NewsChanged:
				f.log.Info("configuration loaded", "directory", f.dir, "domains", f.target.countDomains())
			case follow.NewsRecovered:
				f.log.Info("configuration readable again, unchanged", "directory", f.dir)
			}
		},
	}
	loop.Begin(err)
	loop.Run(ctx)
}

// reload activates changed contents. Two equal reads in a row are necessary, so that it never uses half of a change.
func (f *fileSource) reload() (changed bool, err error) {
	_, digest, err := f.readAll()
	if err != nil || f.read && digest == f.digest {
		return false, errors.Join(err, f.refused)
	}
	files, again, err := f.readAll()
	if err != nil {
		return false, err
	}
	if again != digest {
		if f.read {
			return false, f.refused // still changing: the next poll reads it
		}
		digest = again
	}
	f.digest, f.read = digest, true
	c, err := dropin.Parse(files, f.options)
	if f.refused = err; err != nil {
		f.target.countError()
		return false, err
	}
	f.target.set(c)
	for _, warning := range c.Warnings() {
		f.log.Warn("part of the configuration ignored", "reason", warning)
	}
	return true, nil
}

// CheckFiles parses the configuration files, and returns the warnings about them. It returns nothing if the
// configuration comes from a control plane.
func (s *Settings) CheckFiles() (warnings []string, err error) {
	if s.ConfigType != "FILE" {
		return nil, nil
	}
	f := newFileSource(s, nil, nil)
	files, _, err := f.readAll()
	if err != nil {
		return nil, err
	}
	c, err := dropin.Parse(files, f.options)
	if err != nil {
		return nil, err
	}
	return c.Warnings(), nil
}

// readAll reads all files below the directory, in the order of their names, and returns a hash of them. It resolves
// symbolic links again at each call.
func (f *fileSource) readAll() (files []dropin.File, digest [sha256.Size]byte, err error) {
	root, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return nil, digest, fmt.Errorf("the directory of RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY: %w", err)
	}
	hash, total := sha256.New(), 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		if f.ignores(entry.Name()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return err // a directory, or a link to one
		}
		data, err := smallfile.Read(path, maxFileBytes)
		if err != nil {
			return err
		}
		total += len(data)
		if files = append(files, dropin.File{Name: filepath.Join(f.dir, name), Data: data}); len(files) > maxFiles || total > maxAllBytes {
			return fmt.Errorf("%s: more than %d files or %d bytes: move other files away", f.dir, maxFiles, maxAllBytes)
		}
		fmt.Fprintf(hash, "%q %d\n", name, len(data))
		hash.Write(data)
		return nil
	})
	return files, [sha256.Size]byte(hash.Sum(nil)), err
}

// ignores reports whether a file or directory is not part of the configuration. Names that begin with two dots belong
// to Kubernetes, which keeps the versions of a ConfigMap in them.
func (f *fileSource) ignores(name string) bool {
	return strings.HasPrefix(name, "..") || f.ignoreHidden && strings.HasPrefix(name, ".")
}
