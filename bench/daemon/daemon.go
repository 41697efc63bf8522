// SPDX-License-Identifier: Apache-2.0

// Package daemon runs servers for the duration of a command.
package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

const (
	startTimeout = 10 * time.Second // until it is ready
	stopTimeout  = 10 * time.Second // until it is killed
	pollInterval = 10 * time.Millisecond
)

// A Daemon is a server that runs until Stop.
type Daemon struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	output bytes.Buffer  // valid after ended is closed
	leave  func() bool   // stops watching the context
}

// Start starts a server and waits until ready returns nil. The server ends with ctx or Stop.
func Start(ctx context.Context, cmd *exec.Cmd, ready func(context.Context) error) (*Daemon, error) {
	d := &Daemon{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &d.output, &d.output
	cmd.WaitDelay = stopTimeout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(d.ended)
	}()
	d.leave = context.AfterFunc(ctx, d.interrupt)
	if err := d.await(ctx, ready); err != nil {
		d.Stop()
		return nil, fmt.Errorf("%s: %w\n%s", cmd.Path, err, &d.output)
	}
	return d, nil
}

func (d *Daemon) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.ended:
			return errors.New("the server exited before it responded")
		case <-ctx.Done():
			return fmt.Errorf("%w: the server does not answer: %w", ctx.Err(), err)
		case <-again.C:
		}
	}
}

// Stop ends the server and waits for it.
func (d *Daemon) Stop() {
	d.leave()
	d.interrupt()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-d.ended:
	case <-timer.C:
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
}

func (d *Daemon) interrupt() { _ = d.cmd.Process.Signal(os.Interrupt) }

// FreeAddr returns a loopback port that was free a moment ago.
func FreeAddr() (host, port, addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", "", err
	}
	defer l.Close()
	addr = l.Addr().String()
	host, port, err = net.SplitHostPort(addr)
	return host, port, addr, err
}
