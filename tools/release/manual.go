// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// completions are the scripts that the program prints for shells, and their places. Debian
// and Fedora have different places for zsh.
var completions = []struct{ shell, path string }{
	{"bash", "/usr/share/bash-completion/completions/mete"},
	{"fish", "/usr/share/fish/vendor_completions.d/mete.fish"},
	{"zsh", "/usr/share/zsh/vendor-completions/_mete"},
	{"zsh", "/usr/share/zsh/site-functions/_mete"},
}

// writeManual has the program for this machine write its manual pages and completion
// scripts, and returns them as files to install. They are the same for all platforms.
func (r *release) writeManual(ctx context.Context, programs []*program) ([]packaged, error) {
	i := slices.IndexFunc(programs, func(p *program) bool { return p.platform == platform{runtime.GOOS, runtime.GOARCH} })
	if i < 0 {
		return nil, fmt.Errorf("no program for %s/%s writes the manual: run scripts/release on another machine", runtime.GOOS, runtime.GOARCH)
	}
	pages := filepath.Join(r.work, "manual")
	epoch := fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix())
	if _, err := r.run(ctx, r.work, "env", epoch, programs[i].path, "man", pages); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	var files []packaged
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(pages, entry.Name()))
		if err != nil {
			return nil, err
		}
		packed, err := pack(text)
		if err != nil {
			return nil, err
		}
		files = append(files, packaged{file: file{"/usr/share/man/man1/" + entry.Name() + ".gz", packed, 0o644}})
	}
	for _, c := range completions {
		text, err := r.run(ctx, r.work, programs[i].path, "completion", c.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, packaged{file: file{c.path, []byte(text), 0o644}})
	}
	return files, nil
}

func pack(text []byte) ([]byte, error) {
	var b bytes.Buffer
	zw, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zw.Write(text); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
