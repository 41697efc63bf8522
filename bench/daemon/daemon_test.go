// SPDX-License-Identifier: Apache-2.0

package daemon_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/metehq/mete/bench/daemon"
)

func ready(context.Context) error { return nil }

func TestStopEndsTheServer(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	d, err := daemon.Start(t.Context(), cmd, ready)
	if err != nil {
		t.Fatal(err)
	}
	d.Stop()
	if cmd.ProcessState == nil {
		t.Error("Stop returned before the server had ended")
	}
}

func TestServerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.Command("sleep", "1000")
	d, err := daemon.Start(ctx, cmd, ready)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	d.Stop()
	if got, want := cmd.ProcessState.String(), "signal: interrupt"; got != want {
		t.Errorf("the server ended with %q, want %q", got, want)
	}
}

func TestStartWaitsUntilReady(t *testing.T) {
	asked := 0
	d, err := daemon.Start(t.Context(), exec.Command("sleep", "1000"), func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || asked != 3 {
		t.Fatalf("Start: %v, having asked %d times, want 3", err, asked)
	}
	d.Stop()
}

func TestStartFails(t *testing.T) {
	never := func(context.Context) error { return errors.New("nobody there") }
	_, err := daemon.Start(t.Context(), exec.Command("sh", "-c", "echo a reason; exit 1"), never)
	if err == nil || !strings.Contains(err.Error(), "exited before") || !strings.Contains(err.Error(), "a reason") {
		t.Errorf("a server that ends at once: %v, want what it wrote", err)
	}
	if _, err := daemon.Start(t.Context(), exec.Command("no-such-program"), ready); err == nil {
		t.Error("no error for a program that is not there")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := daemon.Start(ctx, exec.Command("sleep", "1000"), never); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v, want %v", err, context.Canceled)
	}
}

func TestFreeAddr(t *testing.T) {
	host, port, addr, err := daemon.FreeAddr()
	if err != nil || net.JoinHostPort(host, port) != addr {
		t.Fatalf("FreeAddr: %q, %q, %q, %v", host, port, addr, err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
