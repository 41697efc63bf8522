// SPDX-License-Identifier: Apache-2.0

//go:build unix

package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/proxy"
)

const (
	streamEvent  = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1770933892,"model":"m","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	streamEvents = 1 << 20 / len(streamEvent)
)

// BenchmarkStream compares a stream of a megabyte under a limit of requests and under a limit of tokens. The upstream sends an
// event when the client has the previous one, as models are slower than networks. The processor time of the proxy is the
// time of all three, without the time of a client at the upstream. Rounds alternate, and the median counts.
func BenchmarkStream(b *testing.B) {
	arrived := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range streamEvents {
			io.WriteString(w, streamEvent)
			w.(http.Flusher).Flush()
			<-arrived
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer upstream.Close()
	fronts := startFronts(b, upstream, arrived)
	used := map[string][]float64{}
	for b.Loop() {
		for _, f := range fronts {
			begin := processorTime(b)
			f.read(b)
			used[f.name] = append(used[f.name], float64((processorTime(b) - begin).Microseconds()))
		}
	}
	direct, requests, tokens := median(used["direct"]), median(used["requests"]), median(used["tokens"])
	b.ReportMetric(requests-direct, "proxy-µs/MB")
	b.ReportMetric(tokens-requests, "tap-µs/MB")
	b.ReportMetric(100*(tokens-requests)/(requests-direct), "tap-%")
}

// BenchmarkFirstByte compares the time to the first byte of a stream.
func BenchmarkFirstByte(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, streamEvent)
		w.(http.Flusher).Flush()
		io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer upstream.Close()
	fronts := startFronts(b, upstream, nil)
	took := map[string][]float64{}
	for b.Loop() {
		for _, f := range fronts {
			begin := time.Now()
			first := f.read(b)
			took[f.name] = append(took[f.name], float64(first.Sub(begin).Nanoseconds())/1000)
		}
	}
	direct, requests, tokens := median(took["direct"]), median(took["requests"]), median(took["tokens"])
	b.ReportMetric(requests-direct, "proxy-µs")
	b.ReportMetric(tokens-requests, "tap-µs")
}

// A front is an address at which a benchmark asks for a stream.
type front struct {
	name, url string
	client    *http.Client
	arrived   chan struct{} // gets a value for each event; may be nil
}

func startFronts(b *testing.B, upstream *httptest.Server, arrived chan struct{}) []front {
	target, err := url.Parse(upstream.URL)
	if err != nil {
		b.Fatal(err)
	}
	fronts := []front{{name: "direct", url: upstream.URL}}
	for _, tt := range []struct{ name, limit string }{
		{"requests", `{"rate": "1000000/1s", "burst": 100000000}`},
		{"tokens", `{"rate": "1000000000/1s", "burst": 100000000000, "cost_source": "ai:tokens", "streaming": {"on_limit_exceeded": "graceful_close"}}`},
	} {
		p, err := proxy.New(target, allowing(b, tt.limit), proxy.Config{})
		if err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(p)
		b.Cleanup(func() { server.Close(); p.Close() })
		fronts = append(fronts, front{name: tt.name, url: server.URL})
	}
	for i := range fronts {
		transport := &http.Transport{DisableCompression: true}
		b.Cleanup(transport.CloseIdleConnections)
		fronts[i].client, fronts[i].arrived = &http.Client{Transport: transport}, arrived
		fronts[i].read(b)
	}
	return fronts
}

// read asks for a stream and reads it. It returns the time of the first byte.
func (f *front) read(b *testing.B) (first time.Time) {
	b.Helper()
	body := fmt.Sprintf(`{"model": "m", "stream": true, "stream_options": {"include_usage": true}, "messages": [{"role": "user", "content": %q}]}`, strings.Repeat("word ", 200))
	res, err := f.client.Post(f.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b.Fatal(res.Status)
	}
	event := make([]byte, len(streamEvent))
	for first.IsZero() || f.arrived != nil {
		n, err := io.ReadFull(res.Body, event)
		if first.IsZero() {
			first = time.Now()
		}
		if n < len(event) {
			return first // behind the last event
		}
		if err != nil {
			b.Fatal(err)
		}
		if f.arrived != nil {
			f.arrived <- struct{}{}
		}
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		b.Fatal(err)
	}
	return first
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
