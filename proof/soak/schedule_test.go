// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"os"
	"testing"
	"time"
)

// soakVar is the environment variable with the duration of the soak.
const soakVar = "METE_SOAK"

const (
	defaultSoak  = 20 * time.Second
	changeEvery  = 10 * time.Second // between policies
	reportEvery  = time.Minute
	longestQuiet = 2 * time.Minute // between quiet moments
)

// A schedule holds the times of the events.
type schedule struct {
	began   time.Time
	total   time.Duration
	warmup  time.Duration // until the first quiet moment
	quiet   time.Duration // between quiet moments after it
	change  time.Duration // between policies
	outages []time.Duration
	outage  time.Duration // how long the store is down
}

func newSchedule(t *testing.T) schedule {
	total := defaultSoak
	if text := os.Getenv(soakVar); text != "" {
		var err error
		if total, err = time.ParseDuration(text); err != nil || total < defaultSoak {
			t.Fatalf("%s=%q: want a duration of at least %v", soakVar, text, defaultSoak)
		}
	}
	return schedule{
		total:   total,
		warmup:  min(total/5, time.Minute),
		quiet:   min(total/3, longestQuiet),
		change:  min(total/8, changeEvery),
		outages: []time.Duration{total / 3, total * 2 / 3},
		outage:  min(total/10, 20*time.Second),
	}
}

// since is how long ago it began.
func (s schedule) since() time.Duration { return time.Since(s.began) }

// every calls f at intervals until ctx ends. It skips the calls that a slow f misses.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f()
		}
	}
}

// pause waits for d and reports whether ctx was still active at the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// pauseUntil waits until the wall clock, which is the store's, shows at.
func pauseUntil(ctx context.Context, at int64) bool {
	for {
		left := time.Duration(at-now()) * time.Microsecond
		if left < 0 {
			return true
		}
		if !pause(ctx, left+time.Microsecond) {
			return false
		}
	}
}

// now is the wall clock in microseconds. Redis on the same machine has the same.
func now() int64 { return time.Now().UnixMicro() }
