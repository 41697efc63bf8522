// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/store"
)

const serveAbout = `
Runs the limiter as a server. Without flags it keeps its buckets in memory,
decides by a built-in example policy and answers on the loopback address.

The admin address takes tokens: admin_tokens in the configuration file says
whose, and in which role. Without any, the server makes one and leaves it in a
file that only you can read, where these commands find it.

With --upstream it is a reverse proxy: every request is decided by the policy,
and those that are allowed go to the upstream. Only /livez and /readyz are not
passed on. The API is then on the admin address alone.

Without --upstream the main address answers the API: POST /v1/take and /v1/peek,
and /v1/decision for gateways that ask before they forward. What changes buckets
by hand (/v1/refund, /v1/reset) is on the admin address alone.

The policy is read again when its file changes and on SIGHUP. A broken file
never replaces a working policy, and neither does one whose bundle_version is
not higher. With --policy-key it must be signed: see 'mete sign'. With --policy
postgres://HOST/DATABASE it is the rules there, which 'mete rules' and SQL
change: that is in force within a second. SIGTERM and SIGINT end the server
after the requests in flight are answered; a second one ends it at once.

The buckets are full after a restart, unless they are saved. With
--store 'memory:?file=PATH' they are, every minute and when the server ends, and
it starts with them again. It does not start with a file that is damaged. With
--store redis://HOST:6379 or --store postgres://HOST/DATABASE all servers that
say so share them. A server whose store does not answer when it starts waits for
ten seconds, and ends with the exit code 3.

The flags are the settings one changes often; 'mete help config' shows all. Each
setting has an environment variable: METE_STORE, METE_TIMEOUTS_DRAIN. A flag
overrides the environment, and the environment overrides the configuration file.
METE_CONFIG names that file where --config does not.
With --check, validate the settings, the files that they name and the policy,
then exit.
`

// newServeCommand returns "mete serve".
func newServeCommand(std Streams) *cobra.Command {
	var file, format string
	var settings []config.Setting
	var check bool
	cmd := &cobra.Command{
		Use: "serve [flags] [POLICY]", Short: "Run the limiter as a server, or as a gateway", Long: serveAbout, SuggestFor: []string{"start", "run", "server"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && cmd.Flags().Changed("policy") {
				return usageError("unexpected argument %q: there is one policy", args[len(args)-1])
			}
			if len(args) == 1 {
				settings = append(settings, config.Setting{Key: "policy", Value: args[0]})
			}
			c, env, err := loadSettings(cmd.Flags().Changed("config"), file, settings)
			if err != nil || check {
				for _, warning := range env.Unknown {
					fmt.Fprintf(std.Err, "mete serve: warning: %s\n", visible.Lines(warning))
				}
			}
			if err != nil {
				return failEach(exitUsage, err)
			}
			if check {
				return tryServe(cmd.Context(), std, c, env, format)
			}
			return serve(cmd.Context(), std, c, env)
		},
	}
	addServeFlags(cmd, &file, &settings)
	cmd.Flags().BoolVar(&check, "check", false, "validate the settings and the policy, then exit")
	addChoice(cmd, &format, "format", "with --check: the `FORMAT` of the output", "text", "json")
	completePolicy(cmd)
	return cmd
}

// serve runs a server with these settings until ctx ends.
func serve(ctx context.Context, std Streams, c config.Config, env config.Environment) error {
	pipe := logpipe.New(std.Err) // whoever reads it may stop reading
	defer pipe.Close(logPatience)
	std.Err = pipe
	log := newLogger(std.Err, c)
	for _, warning := range env.Unknown {
		log.Warn("environment variable ignored", "reason", warning)
	}
	if len(env.Used) > 0 {
		log.Info("environment variables read", "names", strings.Join(env.Used, ","))
	}
	s, err := server.New(ctx, c, log)
	if brokenPolicy(err) {
		return failEach(exitNo, err)
	}
	if errors.Is(err, store.ErrUnavailable) {
		return failEach(exitUnreachable, fmt.Errorf("%w\nmete starts where its store answers, and the database of its policy; once it runs, it lives without: see on_store_error", err))
	}
	if err != nil {
		return failEach(exitUsage, err)
	}
	s.LogsTo(pipe)
	announce(std.Out, log, c, s)

	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-hangup:
				s.Reload()
			case <-running.Done():
				return
			}
		}
	}()
	if err := s.Run(ctx); err != nil {
		return fail(exitUsage, err)
	}
	return nil
}

// configVariable names the variable with the configuration file, where no flag names one.
const configVariable = "METE_CONFIG"

// loadSettings loads the settings of the server from the file that --config names, or
// METE_CONFIG where the flag is not set, then from the environment and the flags.
func loadSettings(isSet bool, file string, settings []config.Setting) (config.Config, config.Environment, error) {
	variable := os.Getenv(configVariable)
	if isSet || variable == "" {
		return config.Load(file, os.Environ(), settings)
	}
	c, env, err := config.Load(variable, os.Environ(), settings)
	env.Used = slices.Insert(env.Used, 0, configVariable)
	if err != nil && !errors.As(err, new(config.Errors)) { // else each names the file
		err = fmt.Errorf("environment: %s: %w", configVariable, err)
	}
	return c, env, err
}

// logPatience is how long a server that has ended waits for its log to be read.
const logPatience = time.Second

// addServeFlags defines the flags that override settings of the same name.
func addServeFlags(cmd *cobra.Command, file *string, settings *[]config.Setting) {
	fs := cmd.Flags()
	d := config.Default()
	fs.StringVar(file, "config", "", "read settings from `FILE` (default: the one that METE_CONFIG names): see 'mete help config'")
	for _, f := range []struct{ name, usage string }{
		{"policy", "decide by the policy in `FILE`, JSON or YAML, or by the rules in postgres://HOST/DATABASE (default: a built-in example)"},
		{"upstream", "pass allowed requests on to `URL`"},
		{"listen", "main `ADDRESS` (default " + d.Listen + ")"},
		{"admin-listen", "`ADDRESS` of the admin API (default " + d.AdminListen + ")"},
		{"store", "`URL` of the store (default " + d.Store.String() + "): memory:?max_keys=N, memory:?file=PATH, redis://HOST, postgres://HOST/DATABASE"},
		{"violations", "record denied requests in the PostgreSQL at `URL`: postgres://HOST/DATABASE"},
		{"trusted-proxies", "`CIDRS`, separated by commas, whose X-Forwarded-For is believed"},
		{"log-format", "`FORMAT` of the log: text or json (default " + d.LogFormat + ")"},
		{"log-level", "log from `LEVEL` on: debug, info, warn or error (default " + d.LogLevel + ")"},
	} {
		fs.Func(f.name, f.usage, settingOf(f.name, settings))
	}
	fs.BoolFunc("trust-jwt", "believe the claims in bearer tokens WITHOUT verifying them", settingOf("trust-jwt", settings))
	fs.Func("jwks", "verify bearer tokens with the key set in `FILE` or at an http or https URL", func(value string) error {
		if value == "" {
			return errNoFile
		}
		*settings = append(*settings, config.Setting{Key: "jwt.keys", Value: value})
		return nil
	})
	var keys []string
	fs.Func("policy-key", "take only policies that were signed for the public key in `FILE`; may be repeated", func(value string) error {
		if value == "" {
			return errNoFile
		}
		keys = append(keys, value)
		*settings = append(*settings, config.Setting{Key: "policy_keys", Value: strings.Join(keys, ",")})
		return nil
	})
	complete(cmd, "log-format", "text", "json")
	complete(cmd, "log-level", "debug", "info", "warn", "error")
}

// errNoFile is the error of a flag that turns a check on, and is given a variable
// that is empty: the check would be off.
var errNoFile = errors.New("it is empty: name a file, or leave the flag out")

// settingOf returns a function that adds the value of the named flag.
func settingOf(name string, settings *[]config.Setting) func(string) error {
	key := strings.ReplaceAll(name, "-", "_")
	return func(value string) error {
		*settings = append(*settings, config.Setting{Key: key, Value: value})
		return nil
	}
}

// newLogger returns the log that the settings ask for.
func newLogger(w io.Writer, c config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // config has checked it
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		opts.ReplaceAttr = webhook.DurationText
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
