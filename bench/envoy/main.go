// SPDX-License-Identifier: Apache-2.0

// Command envoy compares mete's rate limit services for Envoy with a bare gRPC server of the same messages, and with
// envoyproxy/ratelimit on the same Redis. Each server is a process. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/metehq/mete/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "envoy:", err)
		stop()
		os.Exit(2)
	}
}

// options are the flags.
type options struct {
	rounds   int
	time     time.Duration
	callers  int
	only     *regexp.Regexp
	original string // the program of envoyproxy/ratelimit; empty to build it
	profile  string // a directory for CPU profiles of mete's servers
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(ctx, args[1:])
	}
	var o options
	flags := flag.NewFlagSet("envoy", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 5, "`rounds` to take the median of")
	flags.DurationVar(&o.time, "time", 2*time.Second, "how long to measure one server in one round")
	flags.IntVar(&o.callers, "callers", 64, "number of concurrent callers")
	only := flags.String("only", "", "measure only servers whose names match this `regexp`, and the echo")
	flags.StringVar(&o.original, "ratelimit", "", "`program` of envoyproxy/ratelimit; empty to build the released one")
	flags.StringVar(&o.profile, "profile", "", "`directory` for CPU profiles of mete's servers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.rounds < 1 || o.time <= 0 || o.callers < 1 || flags.NArg() > 0 {
		return errors.New("-rounds, -time and -callers must be above 0, and there are no other arguments")
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	results, err := measure(ctx, o, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d callers on %d connections, median of %d rounds of %v%s\n\n", o.callers, connections, o.rounds, o.time,
		report.Modules("google.golang.org/grpc", "github.com/envoyproxy/go-control-plane/envoy"))
	results.table().Write(stdout)
	return nil
}
