// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/proxy"
)

// BenchmarkProxy compares the proxy with the standard library's, with one upstream and the same number of
// connections, to measure the cost of a limit. "denied" is never forwarded.
func BenchmarkProxy(b *testing.B) {
	answer := []byte(strings.Repeat("x", 1<<10))
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write(answer)
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
		defer transport.CloseIdleConnections()
		drive(b, &httputil.ReverseProxy{
			Rewrite: func(pr *httputil.ProxyRequest) {
				pr.SetURL(target)
				pr.Out.Host = pr.In.Host
				pr.SetXForwarded()
			},
			Transport:  transport,
			BufferPool: &buffers{},
			ErrorLog:   log.New(io.Discard, "", 0),
		}, http.StatusOK)
	})
	for _, tt := range []struct {
		name, rate string
		want       int
	}{{"allowed", `{"rps": 1000000, "burst": 100000000}`, http.StatusOK}, {"denied", `{"rate": "1/1d", "burst": 1}`, http.StatusTooManyRequests}} {
		b.Run(tt.name, func(b *testing.B) {
			p, err := proxy.New(target, allowing(b, tt.rate), proxy.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			drive(b, p, tt.want)
		})
	}
}

// allowing returns a middleware with a limit for each address, kept in memory.
func allowing(b *testing.B, rate string) *httplimit.Middleware {
	b.Helper()
	m, err := policy.Load([]byte(`{"rules": [{"name": "clients", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": `+rate+`}]}`), policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{})
	if err != nil {
		b.Fatal(err)
	}
	mw, err := httplimit.New(lim, httplimit.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return mw
}

// drive sends requests to h over loopback, from 8 goroutines for each processor.
func drive(b *testing.B, h http.Handler, want int) {
	front := httptest.NewServer(h)
	defer front.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	defer transport.CloseIdleConnections()
	var mu sync.Mutex
	var all []time.Duration
	if _, err := (&http.Client{Transport: transport}).Get(front.URL); err != nil { // spends the only token
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var own []time.Duration
		for pb.Next() {
			begin := time.Now()
			req, _ := http.NewRequest(http.MethodGet, front.URL+"/v1/things?page=2", nil)
			resp, err := transport.RoundTrip(req)
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want {
				b.Errorf("got status %d, want %d", resp.StatusCode, want)
			}
			own = append(own, time.Since(begin))
		}
		mu.Lock()
		all = append(all, own...)
		mu.Unlock()
	})
	b.StopTimer()
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	}
}

// buffers is the buffer pool for the standard library's proxy.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if kept, ok := b.pool.Get().(*[32 << 10]byte); ok {
		return kept[:]
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(buf []byte) { b.pool.Put((*[32 << 10]byte)(buf)) }
