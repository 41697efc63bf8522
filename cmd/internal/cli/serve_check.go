// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/prose"
)

// checkedSettings are the JSON form of settings that are valid, with --format json.
type checkedSettings struct {
	OK          bool     `json:"ok"`
	Rules       *int     `json:"rules"`                 // null where the policy is in a database
	Environment []string `json:"environment,omitempty"` // the variables that settings are from
}

// tryServe is "mete serve --check": it validates the settings and the policy, and
// prints which variables of the environment the settings are from.
func tryServe(ctx context.Context, std Streams, c config.Config, env config.Environment, format string) error {
	m, err := server.Check(ctx, c)
	switch {
	case brokenPolicy(err):
		return failEach(exitNo, err)
	case err != nil:
		return failEach(exitUsage, err)
	}
	if format == "json" {
		answer := checkedSettings{OK: true, Environment: env.Used}
		if m != nil {
			n := len(m.Rules())
			answer.Rules = &n
		}
		return writeJSON(std.Out, answer)
	}
	if len(env.Used) > 0 {
		fmt.Fprintf(std.Out, "settings from the environment: %s\n", strings.Join(env.Used, ", "))
	}
	if m == nil {
		fmt.Fprintln(std.Out, "the settings are ok; the policy in the database or at its address was not read")
	} else {
		fmt.Fprintf(std.Out, "the settings are ok, and the policy: %s\n", prose.Count(len(m.Rules()), "rule"))
	}
	return nil
}
