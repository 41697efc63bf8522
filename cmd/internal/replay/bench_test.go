// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
)

const benchPolicy = `{"rules": [
	{"name": "enterprise", "limit_keys": ["header:x-api-key"], "match": {"jwt:plan": "enterprise"},
	 "algorithm": "token_bucket", "algorithm_config": {"rps": 1000, "burst": 2000}},
	{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 0.1, "burst": 20}},
	{"name": "address", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 20}}]}`

// benchTrace returns a trace of n lines in the given format.
func benchTrace(n int, format trace.Format) []byte {
	var b bytes.Buffer
	for i := range n {
		ip := fmt.Sprintf("10.0.%d.%d", i*7%64, i*13%251)
		path := fmt.Sprintf("/v1/item/%d?page=%d", i%1000, i%7)
		if format == trace.FormatCombined {
			fmt.Fprintf(&b, `%s - - [21/Nov/2026:12:%02d:%02d +0000] "GET %s HTTP/1.1" 200 612 "-" "Mozilla/5.0 (X11; Linux x86_64)"`+"\n",
				ip, i/6000%60, i/100%60, path)
			continue
		}
		plan := [...]string{"free", "free", "enterprise"}[i%3]
		fmt.Fprintf(&b, `{"at":%d.%06d,"method":"GET","path":%q,"host":"api.example.com","ip":%q,`+
			`"headers":{"user-agent":"Mozilla/5.0 (X11; Linux x86_64)","x-api-key":"k%d"},"jwt":{"plan":%q}}`+"\n",
			i/1000, i%1000*1000, path, ip, i%500, plan)
	}
	return b.Bytes()
}

// BenchmarkRun replays 20 000 lines in each iteration.
func BenchmarkRun(b *testing.B) {
	const lines = 20_000
	m := load(b, benchPolicy)
	for _, format := range []trace.Format{trace.FormatJSONL, trace.FormatCombined} {
		text := benchTrace(lines, format)
		run := func(b *testing.B, each func(*trace.Request, *mete.Decision) error) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				err := replay.Run(context.Background(), replay.Config{
					Policy: m, Trace: trace.NewReader(bytes.NewReader(text), format), Store: memory, Each: each})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "requests/s")
		}
		b.Run(format.String()+"/text", func(b *testing.B) { run(b, replay.NewStats(m).Add) })
		b.Run(format.String()+"/html", func(b *testing.B) {
			stats := replay.NewStats(m)
			run(b, stats.Add)
			if err := (replay.Report{Counts: stats}).WriteHTML(io.Discard); err != nil { // once, of all of them
				b.Fatal(err)
			}
		})
		b.Run(format.String()+"/json", func(b *testing.B) { run(b, replay.NewLines(io.Discard).Write) })
	}
}
