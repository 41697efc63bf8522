// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is "mete version".
func version(_ context.Context, std Streams, args []string) int {
	fs := newFlags(std, "version")
	operands, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case len(operands) > 0:
		return fs.usageError("unexpected argument %q", operands[0])
	}
	info, _ := debug.ReadBuildInfo()
	fmt.Fprintln(std.Out, versionLine(info))
	return exitOK
}

// versionLine describes a build: "mete v1.2.3 (commit 0123456789ab) go1.26.0
// linux/amd64". The info may be nil.
func versionLine(info *debug.BuildInfo) string {
	version, commit, changed := "(devel)", "", ""
	if info != nil {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value[:min(len(s.Value), 12)]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = ", changed since"
			}
		}
	}
	if commit != "" {
		version += fmt.Sprintf(" (commit %s%s)", commit, changed)
	}
	return fmt.Sprintf("mete %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
