// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/rpmpack"
)

// scripts run when a package is installed or removed.
//
//go:embed package/*.sh
var scripts embed.FS

// The path of the program in the example unit, and in packages.
const (
	localProgram   = "/usr/local/bin/mete"
	packageProgram = "/usr/bin/mete"
)

// Texts of both kinds of packages.
const (
	packageSummary     = "exact rate limiter for HTTP, gRPC and Go"
	packageDescription = "A gateway, a server and commands that limit requests by policies."
	packageMaintainer  = "The mete authors"
)

// A packaged file is installed under its absolute name.
type packaged struct {
	file
	settings bool // administrators may change it, and upgrades keep their changes
}

// writePackages writes a .deb and an .rpm file for each Linux program, with the systemd unit, the settings of
// examples/deploy/systemd, and the manual.
func (r *release) writePackages(programs []*program, manual []packaged) error {
	for _, p := range programs {
		if p.os != "linux" {
			continue
		}
		files, err := r.packageFiles(p)
		if err != nil {
			return err
		}
		files = append(files, manual...)
		name := filepath.Join(r.out, fmt.Sprintf("mete_%s_%s.deb", r.number(), p.arch))
		if err := writeFile(name, func(w io.Writer) error { return r.writeDeb(w, p, files) }); err != nil {
			return err
		}
		name = filepath.Join(r.out, fmt.Sprintf("mete-%s-1.%s.rpm", r.number(), rpmArch[p.arch]))
		if err := writeFile(name, func(w io.Writer) error { return r.writeRPM(w, p, files) }); err != nil {
			return err
		}
	}
	return nil
}

// packageVersion returns the version as dpkg and rpm order them: 1.2.0~rc.1 is before
// 1.2.0. File names have number instead, because some release pages replace a ~ in the
// name of a file, and SHA256SUMS then names another file.
func (r *release) packageVersion() string {
	number, pre, found := strings.Cut(r.number(), "-")
	if !found {
		return number
	}
	return number + "~" + strings.ReplaceAll(pre, "-", ".")
}

func (r *release) packageFiles(p *program) ([]packaged, error) {
	var err error
	read := func(path string) []byte {
		data, readErr := os.ReadFile(path)
		if err == nil {
			err = readErr
		}
		return data
	}
	program, license := read(p.path), read(filepath.Join(r.source, "LICENSE"))
	dir := filepath.Join(r.source, "examples", "deploy", "systemd")
	unit, settings, policy := read(filepath.Join(dir, "mete.service")), read(filepath.Join(dir, "mete.yaml")), read(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(unit, []byte(localProgram)); n != 1 {
		return nil, fmt.Errorf("mete.service has %s %d times, want once, in ExecStart", localProgram, n)
	}
	unit = bytes.Replace(unit, []byte(localProgram), []byte(packageProgram), 1)
	return []packaged{
		{file: file{"/etc/mete/mete.yaml", settings, 0o644}, settings: true},
		{file: file{"/etc/mete/policy.yaml", policy, 0o644}, settings: true},
		{file: file{packageProgram, program, 0o755}},
		{file: file{"/usr/lib/systemd/system/mete.service", unit, 0o644}},
		{file: file{"/usr/share/doc/mete/copyright", append(append(license, '\n'), p.notices...), 0o644}},
	}, nil
}

func readScript(name string) []byte {
	text, err := scripts.ReadFile("package/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}

// rpmArch has rpm's names of processors.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func (r *release) writeRPM(w io.Writer, p *program, files []packaged) error {
	rpm, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "mete", Version: r.packageVersion(), Release: "1", OS: "linux", Arch: rpmArch[p.arch],
		Summary: packageSummary, Description: packageDescription,
		Vendor: packageMaintainer, Packager: packageMaintainer, URL: "https://" + r.modulePath, Licence: "Apache-2.0",
		Group: "System Environment/Daemons", Compressor: "gzip:9",
		BuildHost: "localhost", BuildTime: r.time,
		Recommends: rpmpack.Relations{{Name: "ca-certificates"}},
	})
	if err != nil {
		return err
	}
	add := func(name string, data []byte, mode uint, kind rpmpack.FileType) {
		rpm.AddFile(rpmpack.RPMFile{Name: name, Body: data, Mode: mode, Owner: "root", Group: "root", MTime: uint32(r.time.Unix()), Type: kind})
	}
	for _, f := range files {
		kind := rpmpack.GenericFile
		if f.settings {
			kind = rpmpack.ConfigFile | rpmpack.NoReplaceFile
		}
		add(f.name, f.data, uint(f.mode.Perm()), kind)
	}
	// rpm removes these with the last version of the package, directories when empty.
	const directory = 0o040000
	add("/etc/mete", nil, directory|0o755, rpmpack.GenericFile)
	add("/usr/share/doc/mete", nil, directory|0o755, rpmpack.GenericFile)
	add("/etc/mete/admin.token", nil, 0o600, rpmpack.GhostFile) // postinstall.sh writes it
	rpm.AddPostin(string(readScript("postinstall.sh")))
	rpm.AddPreun(string(readScript("preremove.sh")))
	rpm.AddPostun(string(readScript("postremove.sh")))
	return rpm.Write(w)
}
