// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/metehq/mete/bench/report"
)

// A subject reads the log once and returns its processor time, or 0 if it is unknown.
type subject struct {
	name string
	read func(ctx context.Context) (cpu time.Duration, err error)
	once bool // run in one round only, because it is slow
}

// A result holds the times of a subject in all rounds, in seconds.
type result struct {
	name string
	wall *report.Stat
	cpu  *report.Stat // nil if unknown
}

// subjects returns the subjects, mete first, and a note for each program that is not installed.
func subjects(c config, log accessLog) (all []subject, absent []string) {
	one := append(os.Environ(), "GOMAXPROCS=1")
	mete := func(name string, env []string, args ...string) {
		all = append(all, subject{name: name, read: program(env, c.mete, append([]string{"replay"}, args...)...)})
	}
	mete("mete replay, one core", one, "--policy", log.policy, log.path)
	mete("mete replay, one core, JSON lines", one, "--policy", log.policy, "--format", "json", log.path)
	mete("mete replay, one core, of gzip", one, "--policy", log.policy, log.gzipped)
	mete("mete replay, all cores, of gzip", nil, "--policy", log.policy, log.gzipped)
	mete("mete replay --old --new, one core", one, "--old", log.policy, "--new", log.stricter, log.path)
	all = append(all,
		subject{name: "bufio.Scanner, counts lines", read: scan(log.path, func(line []byte) int { return 1 })},
		subject{name: "bufio.Scanner, splits fields", read: scan(log.path, func(line []byte) int { return len(bytes.Fields(line)) })})
	for _, other := range [][]string{
		{"wc", "-l", log.path},
		{"goaccess", log.path, "--no-global-config", "--log-format=COMBINED", "--no-progress", "-o", log.path + ".json"},
	} {
		if found, err := exec.LookPath(other[0]); err != nil {
			absent = append(absent, other[0]+" is not installed, and so not there.")
		} else {
			all = append(all, subject{name: other[0], read: program(nil, found, other[1:]...), once: other[0] == "goaccess"})
		}
	}
	return all, absent
}

func program(env []string, name string, args ...string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = env
		if err := cmd.Run(); err != nil {
			return 0, err
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
}

// scan returns a function that calls count with every line of a file, in this process.
func scan(name string, count func(line []byte) int) func(context.Context) (time.Duration, error) {
	return func(context.Context) (time.Duration, error) {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(make([]byte, 1<<16), 1<<20)
		n := 0
		for lines.Scan() {
			n += count(lines.Bytes())
		}
		if n == 0 {
			return 0, fmt.Errorf("nothing in %s", name)
		}
		return 0, lines.Err()
	}
}

// measure runs every subject in each round, after a first round that warms up the file cache.
func measure(ctx context.Context, subjects []subject, rounds int, progress io.Writer) ([]result, error) {
	walls, cpus := make([][]float64, len(subjects)), make([][]float64, len(subjects))
	for round := range rounds + 1 {
		for i := range subjects {
			at := (i + round) % len(subjects)
			if subjects[at].once && round != 1 {
				continue
			}
			start := time.Now()
			cpu, err := subjects[at].read(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", subjects[at].name, err)
			}
			if round == 0 {
				continue
			}
			walls[at] = append(walls[at], time.Since(start).Seconds())
			if cpu > 0 {
				cpus[at] = append(cpus[at], cpu.Seconds())
			}
		}
		fmt.Fprintf(progress, "round %d of %d\n", round, rounds)
	}
	results := make([]result, len(subjects))
	for i, s := range subjects {
		results[i] = result{name: s.name, wall: report.NewStat(walls[i])}
		if len(cpus[i]) > 0 {
			results[i].cpu = report.NewStat(cpus[i])
		}
	}
	return results, nil
}

func build(ctx context.Context, dir string) (string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", errors.New("the build information has no module: set -mete PROGRAM")
	}
	program := filepath.Join(dir, "mete")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, path.Dir(info.Main.Path)+"/cmd/mete").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build mete: %w\n%s", err, out)
	}
	return program, nil
}

// The policies have three rules each.
var (
	//go:embed policy.yaml
	policy []byte
	//go:embed stricter.yaml
	stricter []byte
)

type accessLog struct {
	path, gzipped    string
	policy, stricter string
	size             int64
}

func makeLog(dir string, lines int) (l accessLog, err error) {
	l = accessLog{path: filepath.Join(dir, "access.log"), gzipped: filepath.Join(dir, "access.log.gz"),
		policy: filepath.Join(dir, "policy.yaml"), stricter: filepath.Join(dir, "stricter.yaml")}
	if err := errors.Join(os.WriteFile(l.policy, policy, 0o600), os.WriteFile(l.stricter, stricter, 0o600)); err != nil {
		return l, err
	}
	if err := makeFile(l.path, func(w io.Writer) error { return writeLog(w, lines) }); err != nil {
		return l, err
	}
	err = makeFile(l.gzipped, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(writeLog(z, lines), z.Close())
	})
	if err != nil {
		return l, err
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return l, err
	}
	l.size = info.Size()
	return l, nil
}

func makeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
