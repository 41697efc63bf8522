// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/metehq/mete/cmd/internal/buildinfo"
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
	fmt.Fprintln(std.Out, versionLine(buildinfo.Read()))
	return exitOK
}

// versionLine describes a build: "mete v1.2.3 (commit 0123456789ab) go1.26.0
// linux/amd64".
func versionLine(info buildinfo.Info) string {
	version := cmp.Or(info.Version, "(devel)")
	if info.Revision != "" {
		changed := ""
		if info.Modified {
			changed = ", changed since"
		}
		version += fmt.Sprintf(" (commit %s%s)", info.Revision[:min(len(info.Revision), 12)], changed)
	}
	return fmt.Sprintf("mete %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
