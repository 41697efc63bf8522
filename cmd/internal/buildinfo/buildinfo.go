// SPDX-License-Identifier: Apache-2.0

// Package buildinfo reads the version and the commit that the go command put into
// this program.
package buildinfo

import "runtime/debug"

// An Info describes the source of a program.
type Info struct {
	Version  string // such as v1.2.3; empty: built from a tree without a version
	Revision string // the commit; empty: built outside a repository, as by go install
	Modified bool   // whether the tree had changes that are not in Revision
}

// Read returns the Info of this program.
func Read() Info {
	stamped, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{}
	}
	var info Info
	if v := stamped.Main.Version; v != "(devel)" {
		info.Version = v
	}
	for _, s := range stamped.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
}
