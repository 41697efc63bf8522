// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A slowTarget takes its time for the first decision, and none for the others.
type slowTarget struct {
	first time.Duration
	asked atomic.Int64
}

func (s *slowTarget) take(context.Context, int) (bool, error) {
	if s.asked.Add(1) == 1 {
		pass(s.first)
	}
	return true, nil
}

// pass waits in virtual time.
func pass(d time.Duration) { time.Sleep(d) }

func (s *slowTarget) close(context.Context) error { return nil }
func (s *slowTarget) note() string                { return "" }

// measure runs a load on a virtual clock.
func measure(t *testing.T, o Options, first time.Duration) (r Report) {
	synctest.Test(t, func(t *testing.T) {
		if err := o.complete(); err != nil {
			t.Fatal(err)
		}
		l := newLoad(o, &slowTarget{first: first})
		l.run(t.Context())
		r = l.report()
	})
	return r
}

// An open loop counts latency from the moment when a decision is due: one slow answer
// delays those behind it. A closed loop omits them.
func TestRun_CoordinatedOmission(t *testing.T) {
	o := Options{Target: "memory:", Concurrency: 1, Count: 100, Rate: 1000}
	r := measure(t, o, 200*time.Millisecond)
	for name, got := range map[string][2]float64{"p50": {r.Latency.P50, 0.150}, "min": {r.Latency.Min, 0.101}, "max": {r.Latency.Max, 0.200}, "seconds": {r.Seconds, 0.200}} {
		if got[0] < got[1]*0.99 || got[0] > got[1]*1.01 {
			t.Errorf("%s is %v, want %v", name, got[0], got[1])
		}
	}
	o.Rate = 0
	if r := measure(t, o, 200*time.Millisecond); r.Latency.P50 > 0.001 || r.Latency.Max < 0.19 {
		t.Errorf("closed loop: %+v", r.Latency)
	}
}

// An open loop keeps its rate, and tells what it did not begin in time.
func TestRun_OpenLoop(t *testing.T) {
	o := Options{Target: "memory:", Concurrency: 4, Duration: time.Second, Rate: 250}
	if r := measure(t, o, 0); r.Seconds != 1 || r.Decisions < 250 || r.Decisions > 251 || r.Late > 1 {
		t.Errorf("%+v", r)
	}
	o.Concurrency = 1
	if r := measure(t, o, 2*time.Second); r.Decisions != 1 || r.Late != 249 {
		t.Errorf("%+v", r)
	}
}

func TestProgress(t *testing.T) {
	o := Options{Duration: 10 * time.Second, Count: 1000}
	l := newLoad(o, nil)
	l.ended.Store(500)
	if got, want := l.progress(time.Second), "["+strings.Repeat("█", 12)+strings.Repeat(" ", 12)+"] 500 decisions, 500 per second"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	l.failed.Store(1)
	if got := l.progress(20 * time.Second); !strings.HasPrefix(got, "["+strings.Repeat("█", 24)+"]") || !strings.HasSuffix(got, "25 per second, 1 error") {
		t.Errorf("got %q", got)
	}
}

// The bar is removed at the end.
func TestShow(t *testing.T) {
	var terminal bytes.Buffer
	o := Options{Target: "memory:", Concurrency: 1, Duration: time.Second, Rate: 10, Progress: &terminal}
	measure(t, o, 0)
	if out := terminal.String(); strings.Count(out, "decision") < 4 || !strings.HasSuffix(out, "\r\x1b[K") {
		t.Errorf("%q", out)
	}
}

func TestShown(t *testing.T) {
	for target, want := range map[string]string{"http://u:secret@a:1/x": "http://a:1/x", "https://a": "https://a", "redis://:secret@a": "redis://a", "memory:": "memory:"} {
		if got := (&Options{Target: target}).shownTarget(); got != want {
			t.Errorf("shown(%q) = %q, want %q", target, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for key, want := range map[int]string{0: "198.18.0.0", 257: "198.18.1.1", 65536: "198.19.0.0", 131071: "198.19.255.255", 131072: "198.18.0.0"} {
		if got := address(key); got != want {
			t.Errorf("address(%d) = %s, want %s", key, got, want)
		}
	}
}
