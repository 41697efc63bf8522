// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
)

// typical is a request as a browser behind a proxy sends it.
func typical() *http.Request {
	r := httptest.NewRequest("GET", "/v1/items/42?tenant=t1&page=2", nil)
	r.Host = "api.example.com:8443"
	r.RemoteAddr = "10.0.0.1:50312"
	r.Header.Set("X-Api-Key", "k-1234567890")
	r.Header.Set("X-Forwarded-For", "203.0.113.9, 10.0.0.7")
	r.Header.Set("Cookie", "theme=dark; session=abc")
	return r
}

var usual = []string{"header:x-api-key", "header:absent", "method", "path", "host", "ip:address", "query:tenant", "cookie:session"}

func TestLookup_AllocatesNothing(t *testing.T) {
	direct := newSource(t, httpfacts.Config{})
	proxied := newSource(t, httpfacts.Config{Trust: httpfacts.Trust{Proxies: proxies}})
	r := typical()
	for _, name := range usual {
		a := attribute(t, name)
		for _, source := range []*httpfacts.Source{direct, proxied} {
			got := testing.AllocsPerRun(100, func() {
				facts := source.Facts(r)
				facts.Lookup(a)
				facts.Release()
			})
			if got != 0 {
				t.Errorf("Lookup(%s) allocates %v times, want 0", name, got)
			}
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	source := newSource(b, httpfacts.Config{Trust: httpfacts.Trust{Proxies: proxies}})
	r := typical()
	for _, name := range usual {
		a := attribute(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				facts := source.Facts(r)
				facts.Lookup(a)
				facts.Release()
			}
		})
	}
}

func BenchmarkUnverifiedClaims(b *testing.B) {
	source := newSource(b, httpfacts.Config{UnverifiedClaims: true})
	r := typical()
	r.Header.Set("Authorization", "Bearer "+token(`{"iss":"https://id.example.com","sub":"u1","plan":"pro","exp":1700000000}`))
	sub, plan := attribute(b, "jwt:sub"), attribute(b, "jwt:plan")
	b.ReportAllocs()
	for b.Loop() {
		facts := source.Facts(r)
		facts.Lookup(sub)
		facts.Lookup(plan)
		facts.Release()
	}
}
