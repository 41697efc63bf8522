// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestCollector_Percent(t *testing.T) {
	for _, tt := range []struct {
		garbage, live uint64
		want          int
	}{
		{32 << 20, 0, 800}, // the least heap is 4 MiB, times 8
		{32 << 20, 1 << 20, 800},
		{32 << 20, 4 << 20, 800},
		{32 << 20, 8 << 20, 400},
		{32 << 20, 32 << 20, 100},
		{32 << 20, 1 << 40, 100},
		{1, 1 << 20, 100},
		{1 << 30, 64 << 20, 1600},
	} {
		if got := (&collector{garbage: tt.garbage}).percentFor(tt.live); got != tt.want {
			t.Errorf("%d bytes of garbage, %d alive: got %d %%, want %d", tt.garbage, tt.live, got, tt.want)
		}
	}
}

// held keeps memory alive.
var held []byte

// The setting follows what is alive, and ends with the server.
func TestKeepGarbage(t *testing.T) {
	t.Setenv("GOGC", "")
	os.Unsetenv("GOGC")
	end := keepGarbage(32 << 20)
	defer end()
	held = make([]byte, 64<<20)
	defer func() { held = nil }()
	deadline := time.Now().Add(time.Minute)
	for current() != 100 {
		if time.Now().After(deadline) {
			t.Fatalf("with 64 MiB alive: got %d %%, want 100", current())
		}
		runtime.GC()
		runtime.Gosched()
	}
	held = nil
	for current() <= 100 {
		if time.Now().After(deadline) {
			t.Fatalf("with little alive: got %d %%, want more than 100", current())
		}
		runtime.GC()
		runtime.Gosched()
	}
	end()
	runtime.GC()
	if got := current(); got != 100 {
		t.Errorf("in the end: got %d %%, want 100", got)
	}
}

func TestKeepGarbage_IsTheOperatorsToSay(t *testing.T) {
	t.Setenv("GOGC", "123")
	before := current()
	defer keepGarbage(32 << 20)()
	if got := current(); got != before {
		t.Errorf("with GOGC: got %d %%, want %d", got, before)
	}
}

// current returns what the process collects at now.
func current() int {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return int(percent[0].Value.Uint64())
}
