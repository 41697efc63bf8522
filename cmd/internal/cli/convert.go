// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/convert"
)

const convertAbout = `
Converts the rate limits in a gateway's configuration to a policy and lists the
differences between the two. FILE is one of these, or - for standard input:

  %GATEWAYS%

The policy is YAML, with the differences as comments at its top. Standard error
lists them, too: a place in FILE, the behavior of the gateway, the behavior of
mete, and a remedy. With --format json, one object contains both.

A setting that mete cannot express becomes a difference and no rule. Read the
list before you deploy the policy, then try it with 'mete check' and 'mete
replay'.

The exit code is 0 if a policy was written. It is 2 if FILE cannot be read or
has no rate limit. The error then names the line and the recognized parts, and
the command writes nothing.
`

func newConvertCommand(std Streams) *cobra.Command {
	o := convert.Options{In: std.In, Out: std.Out, Err: std.Err}
	var format string
	cmd := &cobra.Command{
		Use: "convert [flags] FILE", Short: "Convert a gateway's rate limits into a policy",
		Long: strings.Replace(convertAbout, "%GATEWAYS%", strings.Join(convert.Descriptions(), "\n  "), 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("%d files given: name one configuration", len(args))
			}
			o.File, o.JSON = args[0], format == "json"
			if err := convert.Run(cmd.Context(), o); err != nil {
				return fail(exitUsage, errors.New(strings.TrimPrefix(err.Error(), "convert: ")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.From, "from", "", "the `GATEWAY` of FILE: "+joinWords(convert.Names())+" (default: detected)")
	completeWords(cmd, "from", convert.Names()...)
	cmd.Flags().StringVar(&o.Output, "output", "", "write the policy to `FILE`, which must not exist")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace the file of --output")
	addFormat(cmd, &format, "yaml", "json")
	return cmd
}
