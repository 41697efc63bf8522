// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/memstore"
)

// live is how many bytes of the heap are in use.
func live() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestRun_BoundedMemory replays a log that is much larger than the memory limit. Every line has a new
// address, and one policy denies them all.
func TestRun_BoundedMemory(t *testing.T) {
	const (
		lines   = 600_000
		each    = 5 // lines of one address, one after the other
		maxKeys = 1 << 14
		most    = 40 << 20 // includes 20 MB for two full toplists and their keys
	)
	old := load(t, `{"rules": [{"name": "r", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 0.05, "burst": 1}}]}`)
	new := load(t, `{"rules": [{"name": "r", "limit_keys": ["ip:address", "header:missing"], "on_missing": "deny", "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1}}]}`)
	in, out := io.Pipe()
	go func() {
		w := bufio.NewWriter(out)
		for i := range lines {
			fmt.Fprintf(w, `2001:db8:%x:%x::1 - - [21/Nov/2026:%02d:%02d:%02d +0000] "GET /page/%d?utm_source=x HTTP/1.1" 200 612 "-" "Mozilla/5.0 (X11; Linux x86_64)"`+"\n",
				i/each>>16, i/each&0xffff, i/360_000, i/6000%60, i/100%60, i)
		}
		w.Flush()
		out.Close()
	}()
	before, worst := live(), uint64(0)
	stats, comparison := replay.NewStats(new), replay.NewComparison(old, new)
	n := 0
	err := replay.Compare(context.Background(), replay.CompareConfig{Old: old, New: new, Trace: trace.NewReader(in, trace.FormatAuto),
		Store: func(now func() bucket.Instant) (mete.Store, error) {
			return memstore.New(memstore.Config{Now: now, MaxKeys: maxKeys})
		},
		Each: func(req *trace.Request, was, is *mete.Decision) error {
			if n++; n%100_000 == 0 {
				worst = max(worst, live())
			}
			comparison.Add(req, was, is, func() string { return "log" })
			return stats.Add(req, is)
		}})
	if err != nil || n != lines {
		t.Fatalf("got %d requests, %v; want %d", n, err, lines)
	}
	if got := comparison.Count(replay.ChangeNewlyLimited); got != lines/each {
		t.Errorf("%d requests are newly limited, want %d", got, lines/each)
	}
	if grown := int64(worst) - int64(before); grown > most {
		t.Errorf("the heap grew by %d bytes, want at most %d", grown, most)
	}
	runtime.KeepAlive(stats)
}
