// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/scaffold"
)

const initAbout = `
Asks four questions and writes two files: policy.yaml, with limits and tests
that pass, and mete.yaml, the settings of the server. Then

  mete check
  mete serve

check the policy and start a limited service. The questions are about the source
of requests, the attribute that identifies clients, the limit, and the store.

Each question has a flag, which answers it in advance. With --yes or --format
json, or if standard input is not a terminal, the command asks no questions, and
missing flags have defaults. After an invalid answer it prints the reason and
asks again.

Existing files are not replaced unless --force is given. Both files are written,
or none.

Exit codes:
  0  both files are written
  1  a file exists
  2  wrong usage, an invalid answer, or a file cannot be written
`

func newInitCommand(std Streams) *cobra.Command {
	o := scaffold.Options{In: std.In, Out: std.Out}
	var yes bool
	var format string
	cmd := &cobra.Command{
		Use: "init [flags] [DIR]", Short: "Write a first policy and settings", Long: initAbout, SuggestFor: []string{"new", "create", "setup"},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("unexpected argument %q: only one directory is allowed", args[1])
			}
			if len(args) == 1 {
				o.Dir = args[0]
			}
			o.JSON = format == "json"
			o.Ask = !yes && !o.JSON && isTerminal(std.In)
			err := scaffold.Run(cmd.Context(), o)
			if _, exists := errors.AsType[*scaffold.ExistsError](err); exists {
				return fail(exitNo, err)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Answers.Front, "front", "", "`SOURCE` of requests: api (programs call mete), the URL of a service behind mete, or a gateway that calls mete: nginx, nginx-lua, haproxy, caddy or traefik (default api)")
	fs.StringVar(&o.Answers.By, "by", "", "`ATTRIBUTE` that identifies clients: address, key, user, or a policy attribute such as header:x-tenant (default address)")
	fs.StringVar(&o.Answers.Keys, "jwks", "", "verify bearer tokens with the key set in `FILE` or at a URL; only limits by a claim, such as user, need it")
	fs.StringVar(&o.Answers.Rate, "limit", "", "`RATE` of each client, such as 100/1m or '100 per minute' (default 100/1m)")
	fs.StringVar(&o.Answers.Burst, "burst", "", "`NUMBER` of requests that a client may send at once (default: a fifth of the number in --limit)")
	fs.StringVar(&o.Answers.Store, "store", "", "`URL` of the store for the counters: memory:, redis://HOST or postgres://HOST/DATABASE (default memory:)")
	fs.BoolVarP(&yes, "yes", "y", false, "ask no question")
	fs.BoolVar(&o.Force, "force", false, "replace existing files")
	addFormat(cmd, &format, "text", "json")
	completeWords(cmd, "front", "api", "http://", "nginx", "nginx-lua", "haproxy", "caddy", "traefik")
	completeWords(cmd, "by", "address", "key", "user")
	completeWords(cmd, "store", "memory:", "redis://", "postgres://")
	return cmd
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
