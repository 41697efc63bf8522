// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-rounds", "1", "-requests", "500", "-clients", "5", "-idle", "20", "-json"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results []result
		Idle    *idleResult
	}
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatalf("output %q: %v", &out, err)
	}
	if len(got.Results) != 8 || got.Idle == nil || got.Idle.Connections != 20 {
		t.Fatalf("results %+v, idle %+v: want two lengths of four subjects, and 20 connections", got.Results, got.Idle)
	}
	for i, r := range got.Results {
		if r.Rate.Median <= 0 || (r.Ratio == nil) != (i%4 == 0) {
			t.Errorf("result %+v lacks a figure", r)
		}
	}
}

func TestRun_BadFlags(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-requests", "0"}, {"-clients", "0"}, {"-idle", "-1"}, {"-idle", "1000000"}, {"more"}, {"-unknown"}} {
		var out strings.Builder
		if err := run(t.Context(), args, &out, io.Discard); err == nil || out.Len() > 0 {
			t.Errorf("run(%q) = %v and printed %q, want an error and nothing", args, err, &out)
		}
	}
}

func TestParseCSV(t *testing.T) {
	got, err := parseCSV("WARNING: Could not fetch server CONFIG\n" +
		`"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` +
		"\n" + `"PING a","76923.08","0.381","0.072","0.343","0.607","1.111","3.807"` + "\n")
	if want := (measurement{76923.08, 1.111}); err != nil || got != want {
		t.Errorf("parseCSV = %+v, %v; want %+v", got, err, want)
	}
	for _, text := range []string{"", "nothing", `"test","p99_latency_ms"` + "\n" + `"a","1"` + "\n"} {
		if got, err := parseCSV(text); err == nil {
			t.Errorf("parseCSV(%q) = %+v, want an error", text, got)
		}
	}
}
