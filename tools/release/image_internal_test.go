// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// TestBuildImage_Link finds the link that Envoy Gateway starts.
func TestBuildImage_Link(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mete")
	if err := os.WriteFile(path, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &release{source: filepath.Join("..", ".."), version: "v0.1.0", modulePath: "github.com/metehq/mete"}
	image, err := r.buildImage(&program{platform: platform{os: "linux", arch: "amd64"}, path: path})
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(image)
	defer content.Close()
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == "bin/ratelimit" && header.Typeflag == tar.TypeSymlink && header.Linkname == "/mete" {
			return
		}
	}
	t.Error("the image lacks the link /bin/ratelimit to /mete")
}
