// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/metehq/mete/bench/contest"
	"github.com/metehq/mete/bench/report"
	"github.com/metehq/mete/bench/subject/inpostgres"
)

const flexibleName = "rate-limiter-flexible"

//go:embed flexible
var flexibleFiles embed.FS

// A flexible runs rate-limiter-flexible with node-postgres, in a new process for each turn, which measures
// itself. The first turn installs it with npm.
type flexible struct {
	node, npm string // programs

	dir       string // the installation, or ""
	installed bool
	failed    error  // the error of the installation
	version   string // for the conditions
}

// A job is the input of the process. Times are in milliseconds, except the window, which is in seconds.
type job struct {
	URL         string  `json:"url"`
	Logged      bool    `json:"logged"`
	Connections int     `json:"connections"`
	Capacity    int     `json:"capacity"`
	Window      int     `json:"window"`
	Keys        int     `json:"keys"`
	Calls       int     `json:"calls"`
	Callers     int     `json:"callers"`
	Wanted      bool    `json:"wanted"`
	WarmUp      float64 `json:"warmUp"`
	Time        float64 `json:"time"`
}

// An answer is the output of the process. Times are in ns.
type answer struct {
	Elapsed   int64      `json:"elapsed"`
	Latencies [][2]int64 `json:"latencies"` // pairs of a duration and its count
}

// window is the window of the rival, which starts with the first take of a key. None ends within a run.
const window = 24 * time.Hour

// endTimeout is the time limit of a process in addition to the time that it measures.
const endTimeout = time.Minute

func (f *flexible) turn(ctx context.Context, task contest.Task, at inpostgres.Place) (contest.Sample, error) {
	if err := f.install(ctx); err != nil {
		return contest.Sample{}, err
	}
	sc := task.Scenario
	argument, err := json.Marshal(job{
		URL: at.URL, Logged: at.Logged, Connections: at.Connections,
		Capacity: sc.Quota.Capacity, Window: int(window.Seconds()),
		Keys: sc.Keys, Calls: sc.Calls, Callers: task.Callers, Wanted: sc.Wanted(),
		WarmUp: milliseconds(task.Time / contest.WarmUp), Time: milliseconds(task.Time),
	})
	if err != nil {
		return contest.Sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*task.Time+endTimeout)
	defer cancel()
	output, err := f.command(ctx, f.node, "measure.mjs", string(argument))
	if err != nil {
		return contest.Sample{}, err
	}
	var said answer
	if err := json.Unmarshal(output, &said); err != nil {
		return contest.Sample{}, fmt.Errorf("measure.mjs wrote %q: %w", output, err)
	}
	return said.sample()
}

func (a answer) sample() (contest.Sample, error) {
	var latencies report.Histogram
	for _, pair := range a.Latencies {
		latencies.AddN(time.Duration(pair[0]), pair[1])
	}
	if latencies.Total() < 1 || a.Elapsed < 1 {
		return contest.Sample{}, errors.New("measure.mjs has measured nothing")
	}
	return contest.NewSample(&latencies, time.Duration(a.Elapsed)), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// install installs the rival once. It does not retry after an error.
func (f *flexible) install(ctx context.Context) error {
	if !f.installed {
		f.installed, f.failed = true, f.tryInstall(ctx)
	}
	return f.failed
}

func (f *flexible) tryInstall(ctx context.Context) error {
	for _, program := range []string{f.node, f.npm} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: it needs Node.js", err)
		}
	}
	var err error
	if f.dir, err = os.MkdirTemp("", "mete-bench-flexible-"); err != nil {
		return err
	}
	entries, err := flexibleFiles.ReadDir("flexible")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := flexibleFiles.ReadFile("flexible/" + entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(f.dir, entry.Name()), text, 0o644); err != nil {
			return err
		}
	}
	if _, err := f.command(ctx, f.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	version, err := f.command(ctx, f.node, "--version")
	f.version = "; Node.js " + strings.TrimSpace(string(version))
	return err
}

func (f *flexible) remove() {
	if f.dir != "" {
		_ = os.RemoveAll(f.dir)
	}
}

func (f *flexible) command(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = f.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return output, err
}
