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
	"github.com/metehq/mete/cmd/internal/scaffold"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/webhook"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/store"
)

const serveAbout = `
Runs the limiter as a server. It reads its settings from --config, or from
mete.yaml in the current directory, which 'mete init' writes. Without settings
it keeps its buckets in memory, uses a built-in example policy and listens on
loopback addresses.

The admin address needs tokens: admin_tokens in the configuration file lists
them with their roles. Without any, the server makes one token. It writes the
token to a file that only you can read, and the other commands find it there. On
a terminal, the server also prints a link that opens the dashboard, signed in.

With --upstream the server is a reverse proxy. The policy decides every request,
and allowed requests go to the upstream. The proxy itself serves only /livez and
/readyz. The API is then only on the admin address.

Without --upstream the main address serves the API: POST /v1/take and /v1/peek,
and /v1/decision for gateways that ask before they forward. Calls that change
buckets (/v1/refund, /v1/reset) are only on the admin address.

With --grpc-listen the server also answers Envoy, and with --resp-listen Redis
clients. A port alone is a port of 127.0.0.1. Another address needs admin_tokens
or TLS: see grpc_listen and resp_listen in 'mete help config'.

The server reloads the policy when its file changes and on SIGHUP. An invalid
policy never replaces a valid one, and a bundle needs a higher bundle_version.
With --policy-key the file must be signed: see 'mete sign'. With --policy
postgres://HOST/DATABASE the server follows the rules in the database, and uses
a change by 'mete rules' or SQL within a second. With --policy https://HOST/FILE
it polls a signed bundle, and keeps the last good one on disk: see policy_keys
and state_directory in 'mete help config'. SIGTERM and SIGINT stop the server
after the active requests. A second signal ends it at once.

After a restart all buckets are full, unless they are saved. With --store
'memory:?file=PATH' the server saves them every minute and when it stops, and
restores them when it starts. It does not start with a damaged file. With
--store redis://HOST:6379 or --store postgres://HOST/DATABASE several servers
share their buckets. If the store does not answer at the start, the server waits
ten seconds and then exits with code 3.

The flags are the most common settings; 'mete help config' shows all. Each
setting has an environment variable: METE_STORE, METE_TIMEOUTS_DRAIN. A flag
overrides the environment, and the environment overrides the configuration file.
Without --config, METE_CONFIG names that file, or it is mete.yaml in the current
directory. --config '' reads none. With --check, the command validates the
settings, the files that they name and the policy, then exits.
`

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
			c, env, err := loadSettings(cmd.Flags().Changed("config"), &file, settings)
			if err != nil || check {
				for _, warning := range env.Unknown {
					fmt.Fprintf(std.Err, "mete serve: warning: %s\n", visible.Lines(warning))
				}
			}
			if err != nil {
				return failEach(exitUsage, err)
			}
			if check {
				return checkSettings(cmd.Context(), std, c, env, format)
			}
			return serve(cmd.Context(), std, c, env, file)
		},
	}
	addServeFlags(cmd, &file, &settings)
	cmd.Flags().BoolVar(&check, "check", false, "validate the settings and the policy, then exit")
	addChoice(cmd, &format, "format", "with --check: the `FORMAT` of the output", "text", "json")
	completePolicy(cmd)
	return cmd
}

// serve runs a server until ctx ends. If file is not empty, the settings come from that file.
func serve(ctx context.Context, std Streams, c config.Config, env config.Environment, file string) error {
	pipe := logpipe.New(std.Err) // the reader of the log may stop reading
	defer pipe.Close(logTimeout)
	std.Err = pipe
	log := newLogger(std.Err, c)
	for _, warning := range env.Unknown {
		log.Warn("environment variable ignored", "reason", warning)
	}
	if file != "" {
		log.Info("settings read", "file", file)
	}
	if len(env.Used) > 0 {
		log.Info("environment variables read", "names", strings.Join(env.Used, ","))
	}
	s, err := server.New(ctx, c, log)
	if isPolicyError(err) {
		return failEach(exitNo, err)
	}
	if errors.Is(err, store.ErrUnavailable) {
		return failEach(exitUnreachable, fmt.Errorf("%w\nat the start, the store and the database of the policy must answer; later, rules decide without the store: see on_store_error", err))
	}
	if err != nil {
		return failEach(exitUsage, err)
	}
	s.AddLogMetrics(pipe)
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

// configVariable names the environment variable with the path of the configuration file, for use without --config.
const configVariable = "METE_CONFIG"

// loadSettings loads the settings from the configuration file, then from the environment and the flags. The file
// is --config, METE_CONFIG or mete.yaml in the current directory. loadSettings sets file to the path that it read.
func loadSettings(isSet bool, file *string, settings []config.Setting) (config.Config, config.Environment, error) {
	variable := os.Getenv(configVariable)
	if isSet || variable == "" {
		if !isSet && isFile(scaffold.SettingsFile) {
			*file = scaffold.SettingsFile
		}
		return config.Load(*file, os.Environ(), settings)
	}
	*file = variable
	c, env, err := config.Load(variable, os.Environ(), settings)
	env.Used = slices.Insert(env.Used, 0, configVariable)
	if err != nil && !errors.As(err, new(config.Errors)) { // a config.Errors already names the file
		err = fmt.Errorf("environment: %s: %w", configVariable, err)
	}
	return c, env, err
}

// logTimeout is how long a stopped server waits until its log is written.
const logTimeout = time.Second

// addServeFlags defines the flags, which override the settings of the same name.
func addServeFlags(cmd *cobra.Command, file *string, settings *[]config.Setting) {
	fs := cmd.Flags()
	d := config.Default()
	fs.StringVar(file, "config", "", "read settings from `FILE` (default: $METE_CONFIG, or mete.yaml in the current directory): see 'mete help config'")
	for _, f := range []struct{ name, usage string }{
		{"policy", "use the policy in `FILE` (JSON or YAML), the rules in postgres://HOST/DATABASE, or the signed bundle at https://HOST/FILE (default: a built-in example)"},
		{"upstream", "forward allowed requests to `URL`"},
		{"listen", "main `ADDRESS` (default " + d.Listen + ")"},
		{"admin-listen", "`ADDRESS` of the admin API (default " + d.AdminListen + ")"},
		{"grpc-listen", "`ADDRESS` or port of the gRPC services for Envoy (default none)"},
		{"resp-listen", "`ADDRESS` or port of the RESP service for Redis clients (default none)"},
		{"store", "`URL` of the store (default " + d.Store.String() + "): memory:?max_keys=N, memory:?file=PATH, redis://HOST, postgres://HOST/DATABASE"},
		{"violations", "record denied requests in the PostgreSQL at `URL`: postgres://HOST/DATABASE"},
		{"trusted-proxies", "trust X-Forwarded-For from these `CIDRS`, separated by commas"},
		{"log-format", "`FORMAT` of the log: text or json (default " + d.LogFormat + ")"},
		{"log-level", "minimum `LEVEL` of the log: debug, info, warn or error (default " + d.LogLevel + ")"},
	} {
		fs.Func(f.name, f.usage, addSetting(f.name, settings))
	}
	fs.BoolFunc("trust-jwt", "trust the claims in bearer tokens WITHOUT verifying them", addSetting("trust-jwt", settings))
	fs.Func("jwks", "verify bearer tokens with the key set in `FILE` or at an http or https URL", func(value string) error {
		if value == "" {
			return errNoFile
		}
		*settings = append(*settings, config.Setting{Key: "jwt.keys", Value: value})
		return nil
	})
	var keys []string
	fs.Func("policy-key", "accept only policies signed for the public key in `FILE`; may be repeated", func(value string) error {
		if value == "" {
			return errNoFile
		}
		keys = append(keys, value)
		*settings = append(*settings, config.Setting{Key: "policy_keys", Value: strings.Join(keys, ",")})
		return nil
	})
	completeWords(cmd, "log-format", "text", "json")
	completeWords(cmd, "log-level", "debug", "info", "warn", "error")
}

// errNoFile is the error of a security flag with an empty value, usually an unset shell variable. Accepting it
// would disable the check.
var errNoFile = errors.New("must not be empty: name a file, or omit the flag")

func addSetting(name string, settings *[]config.Setting) func(string) error {
	key := strings.ReplaceAll(name, "-", "_")
	return func(value string) error {
		*settings = append(*settings, config.Setting{Key: key, Value: value})
		return nil
	}
}

func newLogger(w io.Writer, c config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // config has validated it
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		opts.ReplaceAttr = webhook.DurationText
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

func printSettingsErrors(w io.Writer, command string, mistakes config.Errors) {
	for _, e := range mistakes {
		fmt.Fprintf(w, "%s %s\n", command, visible.Lines(e.Error()))
		for line := range strings.Lines(e.Excerpt) {
			fmt.Fprintf(w, "  %s", visible.Lines(line))
		}
	}
}

// checkedSettings is the JSON output of "mete serve --check --format json" for valid settings.
type checkedSettings struct {
	OK          bool     `json:"ok"`
	Rules       *int     `json:"rules"`                 // null where the policy is in a database
	Environment []string `json:"environment,omitempty"` // the variables that settings are from
}

// checkSettings implements "mete serve --check": it validates the settings and the policy, and prints which
// environment variables it read.
func checkSettings(ctx context.Context, std Streams, c config.Config, env config.Environment, format string) error {
	m, err := server.Check(ctx, c)
	switch {
	case isPolicyError(err):
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
