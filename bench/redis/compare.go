// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// compare measures cells. Within a cell the rounds are outermost, and each
// starts with another subject: drift of the machine hits all alike. A subject
// that fails has no figures there; an error is ours, or ctx's.
func compare(ctx context.Context, srv *server, c config, cells []cell, progress io.Writer) ([]result, error) {
	var results []result
	for _, at := range cells {
		known, random := at.scenario.known(), at.scenario.random()
		samples, failed := make([][]sample, len(at.subjects)), make([]error, len(at.subjects))
		for round := range c.rounds {
			fmt.Fprintf(progress, "%v: round %d of %d\n", at, round+1, c.rounds)
			for turn := range at.subjects {
				i := (turn + round) % len(at.subjects)
				if failed[i] != nil {
					continue
				}
				if err := srv.flush(ctx); err != nil {
					return nil, err
				}
				m := measurement{scenario: at.scenario, subject: at.subjects[i], known: known, random: random, callers: at.callers, time: c.time}
				got, err := m.run(ctx, srv)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil {
					fmt.Fprintf(progress, "%v/%s: %v\n", at, at.subjects[i].Name, err)
				}
				samples[i], failed[i] = append(samples[i], got), err
			}
		}
		for i, s := range at.subjects {
			results = append(results, summarize(at, s.Name, samples[i], failed[i]))
		}
	}
	relate(results)
	return results, nil
}

// conditions says what the figures depend on.
func conditions(c config, srv *server) string {
	text := fmt.Sprintf("%s, %s/%s, %d CPUs shared with Redis %s over loopback TCP; median of %d × %v",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), srv.version, c.rounds, c.time)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, dep := range info.Deps {
		if involved[dep.Path] {
			text += "; " + dep.Path + " " + dep.Version
		}
	}
	return text
}

// involved holds the modules whose versions matter.
var involved = map[string]bool{
	"github.com/go-redis/redis_rate/v10": true,
	"github.com/redis/go-redis/v9":       true,
	"github.com/redis/rueidis":           true,
	"github.com/throttled/throttled/v2":  true,
	"github.com/ulule/limiter/v3":        true,
}
