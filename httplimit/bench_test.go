// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
)

// discard is a ResponseWriter that keeps nothing but its header.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkWrap compares the handler alone with the same handler behind the
// middleware. Each request has a header of its own, as from a server.
func BenchmarkWrap(b *testing.B) {
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // not even a header
	// writing sets the fields of an allowed request in the plainest way.
	writing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["RateLimit-Policy"] = []string{`"free";q=` + strconv.Itoa(1000000) + ";w=" + strconv.Itoa(1)}
		h["RateLimit"] = []string{`"free";r=` + strconv.Itoa(999999) + ";t=" + strconv.Itoa(1)}
		h["RateLimit-Limit"] = []string{strconv.Itoa(1000000)}
		h["RateLimit-Remaining"] = []string{strconv.Itoa(999999)}
		h["RateLimit-Reset"] = []string{strconv.Itoa(1)}
		w.WriteHeader(http.StatusNoContent)
	})
	limited := func(algorithm string, config httplimit.Config) http.Handler {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			b.Fatal(err)
		}
		rules := `{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": ` + algorithm + `}`
		return newMiddleware(b, newLimiter(b, store, rules), config).Wrap(bare)
	}
	routed := func(key httplimit.Key, config httplimit.Config) http.Handler {
		store, err := memstore.New(memstore.Config{})
		if err != nil {
			b.Fatal(err)
		}
		limiter, err := mete.New(store, nil, mete.Config{})
		if err != nil {
			b.Fatal(err)
		}
		limit, err := bucket.NewLimit(1_000_000*bucket.Token, bucket.PerSecond(1_000_000*bucket.Token))
		if err != nil {
			b.Fatal(err)
		}
		m, err := httplimit.New(limiter, config, httplimit.Limit{Name: "free", Bucket: limit, Key: key})
		if err != nil {
			b.Fatal(err)
		}
		return m.Wrap(bare)
	}
	const plenty, none = `{"rps": 1000000, "burst": 1000000}`, `{"rate": "1/1d", "burst": 1}`
	for _, bb := range []struct {
		name    string
		handler http.Handler
	}{
		{"bare", bare},
		{"bare, writing the fields", writing},
		{"allowed", limited(plenty, httplimit.Config{})},
		{"allowed without fields", limited(plenty, httplimit.Config{Fields: []string{"none"}})},
		{"route by address", routed(httplimit.ByAddress(), httplimit.Config{})},
		{"route by address without fields", routed(httplimit.ByAddress(), httplimit.Config{Fields: []string{"none"}})},
		{"route by header without fields", routed(httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny), httplimit.Config{Fields: []string{"none"}})},
		{"denied", limited(none, httplimit.Config{})},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/v1/items", nil)
			r.Header.Set("X-Api-Key", "k-1234567890")
			b.ReportAllocs()
			for b.Loop() {
				bb.handler.ServeHTTP(discard{http.Header{}}, r)
			}
		})
	}
}

// BenchmarkAdded compares a bare handler with the same handler behind one limit.
func BenchmarkAdded(b *testing.B) {
	byHeader := httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny)
	for _, bb := range []struct {
		name    string
		handler http.Handler
	}{
		{"bare", bare},
		{"address", httplimit.Must(inMemory(b), "l", "1000000/1s", 1_000_000, httplimit.ByAddress()).Wrap(bare)},
		{"header", httplimit.Must(inMemory(b), "l", "1000000/1s", 1_000_000, byHeader).Wrap(bare)},
		{"denied", httplimit.Must(inMemory(b), "l", "1/1d", 1, byHeader).Wrap(bare)},
	} {
		request := func() *http.Request {
			r := httptest.NewRequest("GET", "/v1/items", nil)
			r.Header.Set("X-Api-Key", "k-1234567890")
			return r
		}
		b.Run(bb.name+"/serial", func(b *testing.B) {
			r := request()
			b.ReportAllocs()
			for b.Loop() {
				bb.handler.ServeHTTP(discard{http.Header{}}, r)
			}
		})
		b.Run(bb.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := request()
				for pb.Next() {
					bb.handler.ServeHTTP(discard{http.Header{}}, r)
				}
			})
		})
	}
}

// BenchmarkTransport sends requests one after another to two servers: the first reports a
// limit that is far away, and the second reports nothing.
func BenchmarkTransport(b *testing.B) {
	for name, header := range map[string]http.Header{
		"announced": {"Ratelimit-Policy": {`"p";q=1000000000;w=1`}, "Ratelimit": {`"p";r=1000000000;t=1`}},
		"silent":    {},
	} {
		base := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: http.NoBody}, nil
		})
		req := httptest.NewRequest("GET", "http://example.com/", nil)
		for kind, rt := range map[string]http.RoundTripper{"bare": base, "paced": httplimit.NewTransport(httplimit.TransportConfig{Base: base})} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := rt.RoundTrip(req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
