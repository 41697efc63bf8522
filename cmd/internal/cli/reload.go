// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/internal/prose"
)

const reloadAbout = `
Makes a server reload its policy and prints the result. The server also reloads
by itself when the file changes. An invalid policy never replaces a valid one.
The command uses the admin address and needs the role configure.

Exit codes:
  0  the policy is active
  1  the policy is invalid, and the old one stays active
  2  wrong usage
  3  the server does not answer
  4  the server rejects the request
`

func newReloadCommand(std Streams) *cobra.Command {
	var to connection
	var format string
	cmd := &cobra.Command{
		Use: "reload [flags]", Short: "Reload the policy of a server", Long: reloadAbout,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unexpected argument %q: the server reloads its own policy", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := to.newClient()
			if err != nil {
				return fail(exitUsage, err)
			}
			r, err := c.Reload(cmd.Context())
			if err != nil {
				code := clientExit(err)
				if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusUnprocessableEntity {
					code = exitNo
				}
				return fail(code, explain(to.server, err))
			}
			if format == "json" {
				return writeJSON(std.Out, r)
			}
			_, err = fmt.Fprintf(std.Out, "active: %s, version %d\n", prose.Count(r.Rules, "rule"), r.PolicyVersion)
			return err
		},
	}
	addFormat(cmd, &format, "text", "json")
	cmd.Flags().AddFlagSet(to.flags(adminURL()))
	return cmd
}
