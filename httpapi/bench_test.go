// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
)

const generous = `{"rules": [{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket",
	"algorithm_config": {"rps": 1000000, "burst": 1000000}}]}`

// bare is the least a server could do: read the body, answer as many bytes.
var bare = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,"limits":[` +
		`{"rule":"free","limit":"free","remaining":999999,"retry_after":0,"full_after":0.000001}]}`))
})

func benchAPI(b *testing.B) http.Handler {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return apiOver(b, store, generous, httpapi.Config{})
}

// BenchmarkTake is the endpoint alone.
func BenchmarkTake(b *testing.B) {
	for name, h := range map[string]http.Handler{"bare": bare, "mete": benchAPI(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			body := strings.NewReader("")
			r := httptest.NewRequest(http.MethodPost, "/v1/take", body)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = int64(len(k1))
			w := &discard{header: http.Header{}}
			for b.Loop() {
				body.Reset(k1)
				clear(w.header)
				h.ServeHTTP(w, r)
			}
			if w.status != 0 && w.status != 200 {
				b.Fatalf("got %d, want 200", w.status)
			}
		})
	}
}

// BenchmarkTakeOverTCP is what a client on the same machine sees.
func BenchmarkTakeOverTCP(b *testing.B) {
	for name, h := range map[string]http.Handler{"bare": bare, "mete": benchAPI(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			server := httptest.NewServer(h)
			defer server.Close()
			for b.Loop() {
				resp, err := server.Client().Post(server.URL+"/v1/take", "application/json", strings.NewReader(k1))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

// discard is a ResponseWriter that costs nothing.
type discard struct {
	header http.Header
	status int
}

func (w *discard) Header() http.Header         { return w.header }
func (w *discard) Write(p []byte) (int, error) { return len(p), nil }
func (w *discard) WriteHeader(status int)      { w.status = status }
