// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/ratelimit"
	"github.com/metehq/mete/internal/visible"
)

// ratelimitName is the name of the program that "mete ratelimit" replaces.
const ratelimitName = "ratelimit"

const ratelimitAbout = `
Runs in place of envoyproxy/ratelimit, the rate limit service of Envoy. It reads
the environment variables of that service, its configuration files or its
configuration by xDS, and opens the same ports. A link to mete with the name
ratelimit runs this command, so that Envoy Gateway needs only another image.

Limits are fixed windows, as in envoyproxy/ratelimit. Set METE_ALGORITHM to
token_bucket to make each limit a token bucket. REDIS_URL or METE_STORE is
required: METE_STORE=memory keeps the limits in this process.

An invalid configuration never replaces a valid one. SIGTERM and SIGINT stop the
service after the active calls. doc/envoy.md lists all variables, and the
differences from envoyproxy/ratelimit. With --check, the command validates the
variables and the configuration files, then exits.
`

func newRatelimitCommand(std Streams) *cobra.Command {
	var check bool
	var format string
	cmd := &cobra.Command{
		Use: ratelimitName + " [flags]", Short: "Run in place of envoyproxy/ratelimit", Long: ratelimitAbout, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, warnings, err := ratelimit.ReadSettings(os.Environ())
			if err == nil {
				err = s.CheckStore()
			}
			if err == nil && check {
				var more []string
				more, err = s.CheckFiles()
				warnings = append(warnings, more...)
			}
			if err != nil || check {
				for _, warning := range warnings {
					fmt.Fprintf(std.Err, "mete ratelimit: warning: %s\n", visible.Lines(warning))
				}
			}
			switch {
			case err != nil:
				return failEach(exitUsage, err)
			case check && format == "json":
				return writeJSON(std.Out, checkedVariables{OK: true, Warnings: len(warnings)})
			case check && s.ConfigType == "FILE":
				fmt.Fprintln(std.Out, "the variables and the configuration are ok")
				return nil
			case check:
				fmt.Fprintln(std.Out, "the variables are ok")
				return nil
			}
			return runRatelimit(cmd.Context(), std, s, warnings)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "validate the environment variables and the configuration files, then exit")
	addChoice(cmd, &format, "format", "with --check: the `FORMAT` of the output", "text", "json")
	return cmd
}

// checkedVariables is the JSON output of "mete ratelimit --check --format json" for valid variables and files.
type checkedVariables struct {
	OK       bool `json:"ok"`
	Warnings int  `json:"warnings"` // on the standard error
}

// runRatelimit runs the service until ctx ends.
func runRatelimit(ctx context.Context, std Streams, s ratelimit.Settings, warnings []string) error {
	pipe := logpipe.New(std.Err) // the reader of the log may stop reading
	defer pipe.Close(logTimeout)
	log := ratelimit.NewLog(pipe, &s)
	for _, warning := range warnings {
		log.Warn("environment variable ignored", "reason", warning)
	}
	server, err := ratelimit.Open(ctx, s, log)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // stopped while it waited for the store or the control plane
	}
	if err != nil {
		return failEach(exitUsage, err)
	}
	if err := server.Run(ctx); err != nil {
		return fail(exitUsage, err)
	}
	return nil
}

// ArgsOf returns the arguments of a command line, which includes the name of the program. A program named ratelimit is
// the command ratelimit.
func ArgsOf(line []string) []string {
	if len(line) == 0 {
		return nil
	}
	if strings.TrimSuffix(filepath.Base(line[0]), ".exe") == ratelimitName {
		return append([]string{ratelimitName}, line[1:]...)
	}
	return line[1:]
}
