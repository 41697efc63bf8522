// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

type program struct {
	platform
	path    string // of the file
	info    *buildinfo.BuildInfo
	notices []byte // the licenses of its modules
}

// A file is an entry of an archive or a layer.
type file struct {
	name string
	data []byte
	mode fs.FileMode
}

// buildProgram builds mete at the released commit. The go command records the tag and the commit.
func (r *release) buildProgram(ctx context.Context, on platform) (*program, error) {
	p := &program{platform: on, path: filepath.Join(r.work, "programs", on.os+"_"+on.arch, "mete")}
	if on.os == "windows" {
		p.path += ".exe"
	}
	args := []string{"GOOS=" + on.os, "GOARCH=" + on.arch,
		"go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", p.path, "./mete"}
	_, err := r.run(ctx, filepath.Join(r.source, "cmd"), "env", args...)
	if err != nil {
		return nil, err
	}
	if p.info, err = buildinfo.ReadFile(p.path); err != nil {
		return nil, err
	}
	if err := r.checkStamps(p); err != nil {
		return nil, err
	}
	p.notices, err = r.readNotices(ctx, p.info)
	return p, err
}

// checkStamps checks the recorded version, commit and platform.
func (r *release) checkStamps(p *program) error {
	settings := map[string]string{}
	for _, s := range p.info.Settings {
		settings[s.Key] = s.Value
	}
	if got := (platform{settings["GOOS"], settings["GOARCH"]}); got != p.platform {
		return fmt.Errorf("%s is for %s/%s, want %s/%s", p.path, got.os, got.arch, p.os, p.arch)
	}
	revision, modified := settings["vcs.revision"], settings["vcs.modified"]
	if p.info.Main.Version != r.version || revision != r.commit || modified != "false" {
		return fmt.Errorf("%s has the version %s of commit %q (modified: %s), want %s of %s; run scripts/release with the Go version of go.work, or a later one",
			p.path, p.info.Main.Version, revision, modified, r.version, r.commit)
	}
	return nil
}

func (r *release) base(p platform) string {
	return fmt.Sprintf("mete_%s_%s_%s", r.number(), p.os, p.arch)
}

// number returns the version without its v, as packages have it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// writeArchive packs the program with its documents: a zip file for Windows, a tar.gz file for the others.
func (r *release) writeArchive(p *program) error {
	data, err := os.ReadFile(p.path)
	if err != nil {
		return err
	}
	files := []file{{filepath.Base(p.path), data, 0o755}, {noticesName, p.notices, 0o644}}
	names := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	if p.os == "linux" {
		for _, name := range []string{"mete.service", "mete.yaml", "policy.yaml"} {
			names = append(names, "examples/deploy/systemd/"+name) // doc/deploy.md copies them
		}
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		files = append(files, file{name, data, 0o644})
	}
	extension, write := ".tar.gz", r.writeTarGzip
	if p.os == "windows" {
		extension, write = ".zip", r.writeZip
	}
	return writeFile(filepath.Join(r.out, r.base(p.platform)+extension), func(w io.Writer) error { return write(w, files) })
}

// writeFile creates a file and calls write with it.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func (r *release) writeTarGzip(w io.Writer, files []file) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.writeTar(zw, files); err != nil {
		return err
	}
	return zw.Close()
}

// writeTar writes files owned by root, with the time of the commit.
func (r *release) writeTar(w io.Writer, files []file) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: r.time, Typeflag: tar.TypeReg}
		if f.mode.IsDir() {
			header.Typeflag = tar.TypeDir
		}
		data := f.data
		if f.mode&fs.ModeSymlink != 0 { // the data is the target
			header.Typeflag, header.Linkname, header.Size, data = tar.TypeSymlink, string(data), 0, nil
		}
		if err := tw.WriteHeader(header); err != nil {
			return err
		}
		if _, err := tw.Write(data); err != nil {
			return err
		}
	}
	return tw.Close()
}

func (r *release) writeZip(w io.Writer, files []file) error {
	zw := zip.NewWriter(w)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.time}
		header.SetMode(f.mode)
		to, err := zw.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.data); err != nil {
			return err
		}
	}
	return zw.Close()
}

// writeChecksums writes the input of "sha256sum --check SHA256SUMS".
func (r *release) writeChecksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), entry.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
