// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/metehq/mete/proof/meted"
)

// included says which files the Dockerfile's own ignore file lets into a build, by
// Docker's own matcher.
func included(t *testing.T) func(path string) bool {
	t.Helper()
	patterns, err := ignorefile.ReadAll(bytes.NewReader(read(t, "docker", "Dockerfile.dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	m, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return func(path string) bool {
		ignored, err := m.MatchesOrParentMatches(path)
		if err != nil {
			t.Fatal(err)
		}
		return !ignored
	}
}

// buildContext is a copy of the repository as a build sees it.
func buildContext(t *testing.T) string {
	t.Helper()
	wanted, root, dir := included(t), meted.Root(t), t.TempDir()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && name != "." {
			return filepath.SkipDir
		}
		if !entry.Type().IsRegular() || !wanted(name) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			write(t, filepath.Join(dir, name), string(data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestImage_Context(t *testing.T) {
	wanted := included(t)
	for path, want := range map[string]bool{
		"go.mod": true, "doc.go": true, "cmd/mete/main.go": true, "redisstore/take.lua": true, "examples/deploy/docker/mete.yaml": true,
		".git/config": false, ".env": false, "mete.pem": false, "examples/deploy/kubernetes/base/mete.yaml": false,
		"limiter_test.go": false, "cmd/mete/testdata/script/help.txt": false, "proof/go.mod": false,
	} {
		if got := wanted(path); got != want {
			t.Errorf("%s is in the build: %v, want %v", path, got, want)
		}
	}
}
