// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// writeImage writes the OCI images of the Linux programs with one index, as a tar file of an OCI layout. The
// image has no base: it has the program, CA certificates, and the settings of examples/deploy/docker.
func (r *release) writeImage(programs []*program) error {
	index := mutate.Annotations(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), r.annotations()).(v1.ImageIndex)
	for _, p := range programs {
		if p.os != "linux" {
			continue
		}
		image, err := r.buildImage(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
	}
	dir := filepath.Join(r.work, "image")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return err
	}
	files, err := readTree(dir)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.out, "mete_"+r.number()+"_image.tar"), func(w io.Writer) error { return r.writeTar(w, files) })
}

func (r *release) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "mete",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.time.Format(time.RFC3339),
		"org.opencontainers.image.source":   "https://" + r.modulePath,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

func (r *release) buildImage(p *program) (v1.Image, error) {
	program, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	documents, err := r.imageDocuments(p)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.time}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:         "65532:65532", // a number: Kubernetes can tell that it is not root
			Entrypoint:   []string{"/mete"},
			Cmd:          []string{"serve", "--config", "/etc/mete/mete.yaml"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8081/tcp": {}},
			StopSignal:   "SIGTERM",
			Labels:       r.annotations(),
			// At the admin port: clients can take all connections of the main one.
			Healthcheck: &v1.HealthConfig{
				Test:     []string{"CMD", "/mete", "health", "--server", "http://127.0.0.1:8081"},
				Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: 15 * time.Second, Retries: 3,
			},
		},
	})
	if err != nil {
		return nil, err
	}
	for _, files := range [][]file{documents, {{"mete", program, 0o755}, {"bin/", nil, fs.ModeDir | 0o755}, {"bin/ratelimit", []byte("/mete"), fs.ModeSymlink | 0o777}}} { // the layer that changes most comes last
		layer, err := r.buildLayer(files)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "scripts/release " + r.version},
		})
		if err != nil {
			return nil, err
		}
	}
	return mutate.Annotations(image, r.annotations()).(v1.Image), nil
}

// imageDocuments returns all files of the image except the program.
func (r *release) imageDocuments(p *program) ([]file, error) {
	documents := []file{
		{"etc/", nil, fs.ModeDir | 0o755},
		{"etc/mete/", nil, fs.ModeDir | 0o755},
		{"etc/ssl/", nil, fs.ModeDir | 0o755},
		{"etc/ssl/certs/", nil, fs.ModeDir | 0o755},
		{"etc/ssl/certs/ca-certificates.crt", authorities(), 0o644},
		{noticesName, p.notices, 0o644},
	}
	for _, name := range [][2]string{
		{"examples/deploy/docker/mete.yaml", "etc/mete/mete.yaml"},
		{"examples/deploy/docker/policy.yaml", "etc/mete/policy.yaml"},
		{"LICENSE", "LICENSE"},
	} {
		data, err := os.ReadFile(filepath.Join(r.source, name[0]))
		if err != nil {
			return nil, err
		}
		documents = append(documents, file{name[1], data, 0o644})
	}
	return documents, nil
}

// authorities returns the certificates that Mozilla trusts, as the Go project publishes them. A certificate that is
// trusted with a condition is left out, because the file cannot hold the condition.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}

func (r *release) buildLayer(files []file) (v1.Layer, error) {
	var content bytes.Buffer
	if err := r.writeTar(&content, files); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
}

func readTree(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, file{filepath.ToSlash(name), data, 0o644})
		return err
	})
	return files, err
}
