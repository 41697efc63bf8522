// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const unknown = "NOASSERTION" // SPDX's word for an unchecked fact

// noticesName is the file with the licenses of the modules in a program. Most of them must accompany every copy.
const noticesName = "THIRD_PARTY_LICENSES"

// writeSBOM writes the software bill of materials of a program, in SPDX 2.3, from the modules that the go
// command recorded.
func (r *release) writeSBOM(p *program) error {
	name := r.base(p.platform)
	doc := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      name,
		DocumentNamespace: fmt.Sprintf("https://%s/spdx/%s-%s", r.modulePath, name, r.commit),
		CreationInfo: &v2_3.CreationInfo{
			Created:  r.time.Format("2006-01-02T15:04:05Z"),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "mete-release-" + r.version}},
		},
	}
	main := r.describe(p.info.Main.Path, r.version)
	main.PrimaryPackagePurpose = "APPLICATION"
	doc.Packages = append(doc.Packages, main)
	relate(doc, "DOCUMENT", "DESCRIBES", main)
	for _, dep := range append(p.info.Deps, &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(p.info.GoVersion, "go")}) {
		pkg := r.describe(dep.Path, dep.Version)
		doc.Packages = append(doc.Packages, pkg)
		relate(doc, main.PackageSPDXIdentifier, "DEPENDS_ON", pkg)
	}
	return writeFile(filepath.Join(r.out, name+".spdx.json"), func(w io.Writer) error {
		return spdxjson.Write(doc, w, spdxjson.Indent("  "))
	})
}

// describe returns the SPDX package of a module, with its purl.
func (r *release) describe(modulePath, version string) *v2_3.Package {
	license := unknown
	if _, ours := r.dirOf(modulePath); ours {
		license = "Apache-2.0"
	}
	id := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' {
			return c
		}
		return '-'
	}, modulePath+"-"+version)
	return &v2_3.Package{
		PackageName: modulePath, PackageSPDXIdentifier: common.ElementID("Package-" + id), PackageVersion: version,
		PackageDownloadLocation: unknown, IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded: license, PackageLicenseDeclared: license, PackageCopyrightText: unknown,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + strings.ToLower(modulePath) + "@" + version,
		}},
	}
}

func relate(doc *v2_3.Document, from common.ElementID, kind string, to *v2_3.Package) {
	doc.Relationships = append(doc.Relationships, &v2_3.Relationship{
		RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to.PackageSPDXIdentifier)),
	})
}

// readNotices returns the license files of Go and of all modules of other projects in a program.
func (r *release) readNotices(ctx context.Context, info *buildinfo.BuildInfo) ([]byte, error) {
	goroot, err := r.run(ctx, r.source, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var notices bytes.Buffer
	if err := appendNotices(&notices, "the Go standard library", strings.TrimSpace(goroot)); err != nil {
		return nil, err
	}
	for _, dep := range info.Deps {
		if _, ours := r.dirOf(dep.Path); ours {
			continue
		}
		escaped, err := module.EscapePath(dep.Path)
		if err != nil {
			return nil, err
		}
		version, err := module.EscapeVersion(dep.Version)
		if err != nil {
			return nil, err
		}
		if err := appendNotices(&notices, dep.Path+" "+dep.Version, filepath.Join(r.moduleCache(), escaped+"@"+version)); err != nil {
			return nil, err
		}
	}
	return notices.Bytes(), nil
}

// appendNotices adds the license files in dir. Without any, it fails.
func appendNotices(to *bytes.Buffer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(to, "%s\n%s: %s\n\n%s\n\n", strings.Repeat("=", 80), title, entry.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("%s has no license file in %s: mete must not be published with it", title, dir)
	}
	return nil
}
