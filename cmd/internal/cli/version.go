// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/buildinfo"
)

const versionAbout = `
Prints the version, the commit it was built from, and the version of Go.
`

type versionDocument struct {
	Version  string `json:"version"` // "(devel)" for a build without one
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified"` // the commit was changed before the build
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(std Streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Long: versionAbout, Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			info := buildinfo.Read()
			if format == "json" {
				return writeJSON(std.Out, versionDocument{cmp.Or(info.Version, "(devel)"), info.Revision, info.Modified, runtime.Version(), platform()})
			}
			_, err := fmt.Fprintln(std.Out, versionLine(info))
			return err
		},
	}
	addFormat(cmd, &format, "text", "json")
	return cmd
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// versionLine describes a build, such as "mete v1.2.3 (commit 0123456789ab) go1.26.0 linux/amd64".
func versionLine(info buildinfo.Info) string {
	version := cmp.Or(info.Version, "(devel)")
	if info.Revision != "" {
		changed := ""
		if info.Modified {
			changed = ", changed since"
		}
		version += fmt.Sprintf(" (commit %s%s)", info.Revision[:min(len(info.Revision), 12)], changed)
	}
	return fmt.Sprintf("mete %s %s %s", version, runtime.Version(), platform())
}
