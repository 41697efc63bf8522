// SPDX-License-Identifier: Apache-2.0

// Withservers runs a command with one Redis and one PostgreSQL. It sets METE_TEST_REDIS and METE_TEST_POSTGRES
// to their URLs. If a variable is already set, its server is not started. The servers end with the command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/metehq/mete/internal/proctest"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "withservers: usage: withservers COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	status, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withservers:", err)
		os.Exit(1)
	}
	os.Exit(status)
}

func run(name string, args []string) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	redis, postgres, err := proctest.StartShared(ctx)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	for name, url := range map[string]string{proctest.RedisVar: redis, proctest.PostgresVar: postgres} {
		if os.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+url)
		}
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}
