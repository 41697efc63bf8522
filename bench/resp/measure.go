// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/metehq/mete/bench/report"
)

// keys is the number of different keys. redis-benchmark chooses one per command.
const keys = "100000"

// A subject is a command for redis-benchmark. The first subject is mete's, which the others are compared with.
type subject struct {
	name    string
	server  *server
	command []string
	targets map[int]float64 // the minimum of mete's rate / this one, by the length of pipelines
}

func subjects(s *servers) []subject {
	return []subject{
		{"mete: CL.THROTTLE", &s.mete, []string{"CL.THROTTLE", "user:__rand_int__", "999", "1000", "60"}, nil},
		{"mete: PING (the same parser, no decision)", &s.mete, []string{"PING", "user:__rand_int__"}, map[int]float64{16: 0.6}},
		{"Redis: INCR", &s.redis, []string{"INCR", "count:__rand_int__"}, map[int]float64{1: 0.9}},
		{"Redis: token bucket by EVALSHA", &s.redis, []string{"EVALSHA", s.script, "1", "user:__rand_int__", "1000", "60000"}, map[int]float64{16: 4}},
	}
}

// compare measures all subjects in turn in each round, and pairs the figures of a round.
func (c config) compare(ctx context.Context, s *servers, progress io.Writer) ([]result, error) {
	var results []result
	all := subjects(s)
	for _, pipeline := range []int{1, 16} {
		rates, p99s, ratios := make([][]float64, len(all)), make([][]float64, len(all)), make([][]float64, len(all))
		for round := range c.rounds {
			fmt.Fprintf(progress, "-P %d, round %d of %d\n", pipeline, round+1, c.rounds)
			for i, one := range all {
				m, err := c.measure(ctx, one, pipeline)
				if err != nil {
					return nil, err
				}
				rates[i], p99s[i] = append(rates[i], m.rate), append(p99s[i], m.p99)
				ratios[i] = append(ratios[i], rates[0][round]/m.rate)
			}
		}
		for i, one := range all {
			r := result{Subject: one.name, Pipeline: pipeline, Rate: report.NewStat(rates[i]), P99: report.NewStat(p99s[i]), Target: one.targets[pipeline]}
			if i > 0 {
				r.Ratio = report.NewStat(ratios[i])
			}
			results = append(results, r)
		}
	}
	return results, nil
}

type measurement struct{ rate, p99 float64 } // requests per second, milliseconds

func (c config) measure(ctx context.Context, one subject, pipeline int) (measurement, error) {
	requests := c.requests
	if pipeline > 1 {
		requests *= 5
	}
	args := append([]string{"-h", one.server.host, "-p", one.server.port, "--csv", "-r", keys,
		"-c", strconv.Itoa(c.clients), "-n", strconv.Itoa(requests), "-P", strconv.Itoa(pipeline)}, one.command...)
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, "redis-benchmark", args...)
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return measurement{}, fmt.Errorf("redis-benchmark %s: %w\n%s", one.name, err, &stderr)
	}
	m, err := parseCSV(string(output))
	if err != nil {
		return measurement{}, fmt.Errorf("redis-benchmark %s: %w", one.name, err)
	}
	return m, nil
}

// parseCSV reads a row such as "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms",
// "p99_latency_ms","max_latency_ms", below its head.
func parseCSV(text string) (measurement, error) {
	_, text, found := strings.Cut(text, `"test",`)
	rows, err := csv.NewReader(strings.NewReader(`"test",` + text)).ReadAll()
	if !found || err != nil || len(rows) != 2 {
		return measurement{}, errors.Join(fmt.Errorf("printed %q, want a head and a row", text), err)
	}
	var m measurement
	for i, name := range rows[0] {
		value, err := strconv.ParseFloat(rows[1][i], 64)
		switch name {
		case "rps":
			m.rate = value
		case "p99_latency_ms":
			m.p99 = value
		default:
			continue
		}
		if err != nil {
			return m, err
		}
	}
	if m.rate == 0 {
		return m, fmt.Errorf("printed %q without a rate", text)
	}
	return m, nil
}
