// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
)

// StartShared starts a Redis and a PostgreSQL that end with this process. It returns the values of [RedisVar]
// and [PostgresVar].
func StartShared(ctx context.Context) (redisURL, postgresURL string, err error) {
	if postgresURL, err = sharedPostgres(); err != nil {
		return "", "", err
	}
	addr, err := startSharedRedis(ctx)
	if err != nil {
		return "", "", err
	}
	return "redis://" + addr, postgresURL, nil
}

// endWithInput runs the command in "$@" until the command or the standard input ends.
const endWithInput = `"$@" </dev/null >/dev/null 2>&1 &
read -r _
kill $!`

func startSharedRedis(ctx context.Context) (addr string, err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return "", fmt.Errorf("redis-server is missing: run scripts/setup: %w", err)
	}
	if addr, err = reserveAddrForGood(); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", endWithInput, "sh", program,
		"--port", portOf(addr), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	cmd.Dir = "/"
	setProcessGroup(cmd)
	input, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start redis-server: %w", err)
	}
	keepUntilExit(input)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = Poll(ctx, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return "", fmt.Errorf("redis-server is not ready: %w", err)
	}
	return addr, nil
}
