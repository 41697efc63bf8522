// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"fmt"
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

// benchBatch is a batch of takes, each with a key of its own.
var benchBatch = func() string {
	var takes []string
	for i := range httpapi.MaxBatch {
		takes = append(takes, fmt.Sprintf(`{"attributes":{"header:x-api-key":"user:%011d"}}`, i))
	}
	return `{"requests":[` + strings.Join(takes, ",") + `]}`
}()

// A client asks one handler the same again and again.
type client struct {
	text string
	body *strings.Reader
	r    *http.Request
	w    *discard
}

func newClient(text string) *client {
	c := &client{text: text, body: strings.NewReader(""), w: &discard{header: http.Header{}}}
	c.r = httptest.NewRequest(http.MethodPost, "/v1/take", c.body)
	c.r.Header.Set("Content-Type", "application/json")
	c.r.ContentLength = int64(len(text))
	return c
}

func (c *client) ask(h http.Handler) {
	c.body.Reset(c.text)
	clear(c.w.header)
	h.ServeHTTP(c.w, c.r)
}

// BenchmarkTake is the endpoint alone.
func BenchmarkTake(b *testing.B) {
	api := benchAPI(b)
	for _, bb := range []struct {
		name, body string
		h          http.Handler
	}{{"bare", k1, bare}, {"one", k1, api}, {"batch", benchBatch, api}} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			c := newClient(bb.body)
			for b.Loop() {
				c.ask(bb.h)
			}
			if c.w.status != 0 && c.w.status != 200 {
				b.Fatalf("got %d, want 200", c.w.status)
			}
		})
		b.Run(bb.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for c := newClient(bb.body); pb.Next(); {
					c.ask(bb.h)
				}
			})
		})
	}
}

// BenchmarkTakeOverTCP measures a take of a client on the same machine.
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

// BenchmarkDecision measures a gateway's request.
func BenchmarkDecision(b *testing.B) {
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	api := apiOver(b, store, generous, httpapi.Config{Gateway: httpapi.Gateway{Profile: httpapi.ProfileNGINX, TrustedHops: 1}})
	r := httptest.NewRequest(http.MethodGet, "/v1/decision", nil)
	for name, value := range map[string]string{
		"X-Original-Method": "GET", "X-Original-Uri": "/v1/users?page=2", "X-Original-Host": "example.com",
		"X-Forwarded-For": "192.0.2.1", "X-Api-Key": "k1",
	} {
		r.Header.Set(name, value)
	}
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		api.ServeHTTP(w, r)
	}
	if w.status != 200 {
		b.Fatalf("got %d, want 200", w.status)
	}
}
