// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/policy"
)

// Requests that a rule skips are one record per rule and minute, also when the policy is
// replaced meanwhile.
func TestSkipLog(t *testing.T) {
	const text = `{"rules": [
		{"name": "a", "limit_keys": ["header:x-api-key", "ip:address"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "b", "limit_keys": ["jwt:sub"], "algorithm_config": {"rate": "1/1h", "burst": 5}}]}`
	synctest.Test(t, func(t *testing.T) {
		m, err := policy.Load([]byte(text), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		l := newSkipLog()
		l.record(log, m.Rules()[0]) // no policy is active yet
		for range 3 {
			l.setPolicy(m)
			for range 100 {
				l.record(log, m.Rules()[0])
				l.record(log, m.Rules()[1])
			}
			time.Sleep(skipLogInterval / 2)
		}
		got := out.String()
		if n := strings.Count(got, "\n"); n != 4 {
			t.Errorf("got %d lines, want 4:\n%s", n, got)
		}
		for line, want := range map[string]int{
			"rule=a limit_keys=header:x-api-key,ip:address requests=1\n": 1, "rule=a limit_keys=header:x-api-key,ip:address requests=200\n": 1,
			"rule=b limit_keys=jwt:sub requests=1\n": 1, "rule=b limit_keys=jwt:sub requests=200\n": 1,
		} {
			if n := strings.Count(got, line); n != want {
				t.Errorf("got %q %d times, want %d:\n%s", line, n, want, got)
			}
		}
	})
}

// Requests at one instant are one record, and none of them is lost.
func TestSkipLog_Concurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := policy.Load([]byte(`{"name": "a", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1h", "burst": 5}}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		l := newSkipLog()
		l.setPolicy(m)
		log := slog.New(slog.NewTextHandler(&out, nil))
		for range 8 {
			go func() {
				for range 100 {
					l.record(log, m.Rules()[0])
				}
			}()
		}
		synctest.Wait()
		time.Sleep(skipLogInterval)
		l.record(log, m.Rules()[0])
		total := 0
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			_, n, _ := strings.Cut(line, "requests=")
			requests, err := strconv.Atoi(n)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			total += requests
		}
		if lines := strings.Count(out.String(), "\n"); lines != 2 || total != 801 {
			t.Errorf("got %d lines of %d requests, want 2 of 801:\n%s", lines, total, out.String())
		}
	})
}

// Counting a request that a rule skips allocates nothing.
func TestSkipLog_Allocations(t *testing.T) {
	m, err := policy.Load([]byte(`{"name": "a", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1h", "burst": 5}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := newSkipLog()
	l.setPolicy(m)
	log := slog.New(slog.DiscardHandler)
	l.record(log, m.Rules()[0])
	if n := testing.AllocsPerRun(100, func() { l.record(log, m.Rules()[0]) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
