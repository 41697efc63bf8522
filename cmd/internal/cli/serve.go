// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/logpipe"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/store"
)

// serve is "mete serve".
func serve(ctx context.Context, std Streams, args []string) int {
	fs := newFlags(std, "serve")
	file, settings := serveFlags(fs)
	check := fs.Bool("check", false, "validate the settings and the policy, then exit")
	operands, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case len(operands) > 0:
		return fs.usageError("%q is not a flag; to use it as the policy write --policy %s", operands[0], operands[0])
	}
	c, env, err := loadSettings(fs, *file, *settings)
	if err != nil || *check {
		for _, warning := range env.Unknown {
			fmt.Fprintf(std.Err, "mete serve: warning: %s\n", visible.Lines(warning))
		}
	}
	if err != nil {
		return failEach(std, exitUsage, "serve", err)
	}
	if *check {
		return tryServe(ctx, std, c, env)
	}
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
		return failEach(std, exitNo, "serve", err)
	}
	if errors.Is(err, store.ErrUnavailable) {
		return failEach(std, exitUnreachable, "serve", fmt.Errorf("%w\nmete starts where its store answers, and the database of its policy; once it runs, it lives without: see on_store_error", err))
	}
	if err != nil {
		return failEach(std, exitUsage, "serve", err)
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
		return fail(std, exitUsage, "serve", err)
	}
	return exitOK
}

// configVariable names the variable with the configuration file, where no flag names one.
const configVariable = "METE_CONFIG"

// loadSettings loads the settings of the server from the file that --config names, or
// METE_CONFIG without the flag, then from the environment and the flags.
func loadSettings(fs *flagSet, file string, settings []config.Setting) (config.Config, config.Environment, error) {
	isSet := false
	fs.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "config" })
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

// serveFlags defines the flags that override settings of the same name.
func serveFlags(fs *flagSet) (file *string, settings *[]config.Setting) {
	settings = new([]config.Setting)
	d := config.Default()
	file = fs.String("config", "", "read settings from `FILE` (default: the one that METE_CONFIG names): see 'mete help config'")
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
	return file, settings
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

// failEach prints every line of err as an error of the named command.
func failEach(std Streams, code int, name string, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(std.Err, "mete %s: %s\n", name, visible.Lines(strings.TrimSuffix(line, "\n")))
	}
	return code
}

// newLogger returns the log that the settings ask for.
func newLogger(w io.Writer, c config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // config has checked it
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		opts.ReplaceAttr = durationText
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// durationText has durations in JSON as in text: "8s", and not nanoseconds.
func durationText(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
