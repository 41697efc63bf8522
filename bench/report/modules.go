// SPDX-License-Identifier: Apache-2.0

package report

import (
	"runtime/debug"
	"strings"
)

// Modules returns the versions of these modules in the running program, each after a semicolon.
func Modules(paths ...string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	versions := map[string]string{}
	for _, dep := range info.Deps {
		versions[dep.Path] = dep.Version
	}
	var text strings.Builder
	for _, path := range paths {
		if version := versions[path]; version != "" {
			text.WriteString("; " + path + " " + version)
		}
	}
	return text.String()
}
