// SPDX-License-Identifier: Apache-2.0

// Package buildinfo reads the version and the commit that the go command stored in this program.
package buildinfo

import "runtime/debug"

type Info struct {
	Version  string // such as v1.2.3; empty if the source tree has no version
	Revision string // commit; empty outside a repository, for example after go install
	Modified bool   // the source tree had uncommitted changes
}

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
