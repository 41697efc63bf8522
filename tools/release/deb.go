// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// writeDeb writes a Debian binary package, see deb(5): an ar archive with the format version, the control
// files and the installed files.
func (r *release) writeDeb(w io.Writer, p *program, files []packaged) error {
	var control, data bytes.Buffer
	if err := r.writeTarGzip(&control, r.debControl(p, files)); err != nil {
		return err
	}
	if err := r.writeTarGzip(&data, debData(files)); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, member := range []file{
		{name: "debian-binary", data: []byte("2.0\n")},
		{name: "control.tar.gz", data: control.Bytes()},
		{name: "data.tar.gz", data: data.Bytes()},
	} {
		if _, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.name, r.time.Unix(), 0, 0, 0o100644, len(member.data)); err != nil {
			return err
		}
		if len(member.data)%2 == 1 {
			member.data = append(member.data, '\n')
		}
		if _, err := w.Write(member.data); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) debControl(p *program, files []packaged) []file {
	var sums, settings strings.Builder
	size := 0
	for _, f := range files {
		size += (len(f.data) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), strings.TrimPrefix(f.name, "/"))
		if f.settings {
			fmt.Fprintln(&settings, f.name)
		}
	}
	control := fmt.Sprintf(`Package: mete
Version: %s
Architecture: %s
Section: net
Priority: optional
Maintainer: %s <https://%s>
Installed-Size: %d
Recommends: ca-certificates
Homepage: https://%[4]s
Description: %[6]s
 %[7]s
`, r.packageVersion(), p.arch, packageMaintainer, r.modulePath, size, packageSummary, packageDescription)
	return []file{
		{"./control", []byte(control), 0o644},
		{"./conffiles", []byte(settings.String()), 0o644},
		{"./md5sums", []byte(sums.String()), 0o644},
		{"./postinst", readScript("postinstall.sh"), 0o755},
		{"./prerm", readScript("preremove.sh"), 0o755},
		{"./postrm", readScript("postremove.sh"), 0o755},
	}
}

// debData returns the files to install, each after its parent directories.
func debData(files []packaged) []file {
	var data []file
	known := map[string]bool{}
	var addDir func(dir string)
	addDir = func(dir string) {
		if known[dir] {
			return
		}
		known[dir] = true
		if dir != "/" {
			addDir(path.Dir(dir))
		}
		data = append(data, file{"." + strings.TrimSuffix(dir, "/") + "/", nil, fs.ModeDir | 0o755})
	}
	for _, f := range files {
		addDir(path.Dir(f.name))
		data = append(data, file{"." + f.name, f.data, f.mode})
	}
	return data
}
