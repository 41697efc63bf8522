// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/cmd/internal/server"
)

// tryServe is "mete serve --check": it says what is wrong with the settings, and
// serves nothing.
func tryServe(ctx context.Context, std Streams, c config.Config) int {
	m, err := server.Check(ctx, c)
	switch {
	case brokenPolicy(err):
		return failEach(std, exitNo, "serve", err)
	case err != nil:
		return failEach(std, exitUsage, "serve", err)
	case m == nil:
		fmt.Fprintln(std.Out, "the settings are ok; the policy in the database was not read")
	default:
		fmt.Fprintf(std.Out, "the settings are ok, and the policy: %s\n", prose.Count(len(m.Rules()), "rule"))
	}
	return exitOK
}
