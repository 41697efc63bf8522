// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/metehq/mete/bench/report"
)

// maxP99 is the maximum of the p99 of other clients with idle connections / without.
const maxP99 = 1.5

// An idleResult has the cost of idle connections.
type idleResult struct {
	Connections   int          `json:"connections"`
	BytesPerIdle  int64        `json:"bytes_per_connection"` // memory of the server process
	Without, With *report.Stat // p99 of other clients in milliseconds
	Ratio         *report.Stat `json:"p99_ratio"`
}

// measureIdle measures other clients in turn without and with idle connections. Every connection has executed one
// command, and sends nothing afterward.
func (c config) measureIdle(ctx context.Context, s *servers, progress io.Writer) (*idleResult, error) {
	r := &idleResult{Connections: c.idle}
	mete := subjects(s)[0]
	var without, with, ratios []float64
	for round := range c.rounds {
		fmt.Fprintf(progress, "idle connections, round %d of %d\n", round+1, c.rounds)
		before, err := c.measure(ctx, mete, 1)
		if err != nil {
			return nil, err
		}
		small := residentBytes(s.mete.cmd.Process.Pid)
		idle, err := connectIdle(ctx, s.mete.addr, c.idle)
		if err != nil {
			return nil, err
		}
		if round == 0 {
			r.BytesPerIdle = (residentBytes(s.mete.cmd.Process.Pid) - small) / int64(c.idle)
		}
		after, err := c.measure(ctx, mete, 1)
		for _, nc := range idle {
			nc.Close()
		}
		if err != nil {
			return nil, err
		}
		without, with, ratios = append(without, before.p99), append(with, after.p99), append(ratios, after.p99/before.p99)
	}
	r.Without, r.With, r.Ratio = report.NewStat(without), report.NewStat(with), report.NewStat(ratios)
	return r, nil
}

// connectIdle opens connections that have executed one command.
func connectIdle(ctx context.Context, addr string, n int) ([]net.Conn, error) {
	var list []net.Conn
	for range n {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			list = append(list, nc)
			err = throttleOnce(nc)
		}
		if err != nil {
			for _, nc := range list {
				nc.Close()
			}
			return nil, fmt.Errorf("idle connection %d of %d: %w", len(list), n, err)
		}
	}
	return list, nil
}

func throttleOnce(nc net.Conn) error {
	if _, err := io.WriteString(nc, "CL.THROTTLE idle 99 1 1 0\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReaderSize(nc, 64).ReadString('\n')
	if err == nil && line != "*5\r\n" {
		err = fmt.Errorf("the server answers %q, want an array", line)
	}
	return err
}

// residentBytes returns the memory of a process. It is 0 on systems without /proc.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

func (r *idleResult) write(w io.Writer) {
	table := report.Table{{"idle connections", "memory per connection", "p99 of 50 others without", "with", "ratio", "target"}}
	table.Add(fmt.Sprint(r.Connections), fmt.Sprintf("%d bytes", r.BytesPerIdle), fmt.Sprintf("%.2f ms", r.Without.Median),
		fmt.Sprintf("%.2f ms", r.With.Median), fmt.Sprintf("%.2f", r.Ratio.Median), fmt.Sprintf("≤ %.1f", maxP99))
	table.Write(w)
}
