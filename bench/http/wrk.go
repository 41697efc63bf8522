// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type request struct {
	method, path string
	body         string // JSON; "" for none
	paced        bool   // with a pause of some milliseconds before each
}

type wrkFigures struct {
	requests int64
	elapsed  time.Duration
	p50, p99 time.Duration
}

const takeBody = `{"attributes":{"header:x-api-key":"user:00000001234"}}`

func batchBody(n int) string {
	takes := make([]string, n)
	for i := range takes {
		takes[i] = fmt.Sprintf(`{"attributes":{"header:x-api-key":"user:%011d"}}`, i)
	}
	return `{"requests":[` + strings.Join(takes, ",") + `]}`
}

// wrkScript makes wrk send a request and print the figures.
//
//go:embed wrk.lua
var wrkScript []byte

// pauses makes a client pause before each request. wrk checks for the function, so one script cannot do both.
const pauses = "\nfunction delay() return math.random(2, 6) end\n"

// load makes wrk send r over the given number of connections. Every answer must be a success.
func (s *stage) load(ctx context.Context, url string, r request, connections int, d time.Duration) (l wrkFigures, err error) {
	script := plainFile
	if r.paced {
		script = pacedFile
	}
	args := []string{
		"-t" + strconv.Itoa(min(connections, 2)), "-c" + strconv.Itoa(connections), fmt.Sprintf("-d%ds", d/time.Second),
		"--timeout", "30s", "-s", filepath.Join(s.dir, script), url, "--", r.method, r.path,
	}
	if r.body != "" {
		file, err := s.write(fmt.Sprintf("body-%d.json", len(r.body)), []byte(r.body))
		if err != nil {
			return l, err
		}
		args = append(args, file)
	}
	out, err := exec.CommandContext(ctx, "wrk", args...).CombinedOutput()
	if err != nil {
		return l, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	return parse(string(out))
}

func parse(out string) (l wrkFigures, err error) {
	var failed, refused, elapsed, p50, p99 int64
	_, line, _ := strings.Cut(out, "\nresult ")
	if _, err := fmt.Sscanf(line, "requests=%d elapsed=%d p50=%d p99=%d failed=%d refused=%d",
		&l.requests, &elapsed, &p50, &p99, &failed, &refused); err != nil {
		return l, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	if l.requests == 0 || failed > 0 || refused > 0 {
		return l, fmt.Errorf("wrk: %d requests: %d failed, %d got an error status", l.requests, failed, refused)
	}
	l.elapsed, l.p50, l.p99 = time.Duration(elapsed)*time.Microsecond, time.Duration(p50)*time.Microsecond, time.Duration(p99)*time.Microsecond
	return l, nil
}

// The files of the script, without and with pauses.
const (
	plainFile = "plain.lua"
	pacedFile = "paced.lua"
)

func (s *stage) write(name string, content []byte) (string, error) {
	path := filepath.Join(s.dir, name)
	return path, os.WriteFile(path, content, 0o600)
}
