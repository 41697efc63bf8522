// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
)

// bare is a handler that sets a header field, as most handlers do. So its answer has a header,
// and the middleware needs none of its own.
var bare = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = plainText
	w.WriteHeader(http.StatusNoContent)
})

var plainText = []string{"text/plain"}

// inMemory returns a limiter without a policy, over a store in memory.
func inMemory(t testing.TB) *mete.Limiter {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// The middleware adds two allocations to a bare handler that it admits requests to: the
// status of the limit, and the fields. The key of a client that comes often is remembered.
func TestWrap_Allocations(t *testing.T) {
	if raceEnabled {
		return // pools lose what they hold on purpose then
	}
	for _, tt := range []struct {
		what   string
		key    httplimit.Key
		fields []string
		most   float64
	}{
		{"everyone", httplimit.Everyone(), []string{"none"}, 1},
		{"by address", httplimit.ByAddress(), []string{"none"}, 1},
		{"by header", httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny), []string{"none"}, 1},
		{"by address, with fields", httplimit.ByAddress(), nil, 2},
		{"by header, with fields", httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny), nil, 2},
	} {
		m, err := httplimit.New(inMemory(t), httplimit.Config{Fields: tt.fields}, httplimit.Limit{Name: "l", Bucket: hourly(t, 1_000_000), Key: tt.key})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", "k-1234567890")
		count := func(handler http.Handler) float64 {
			return testing.AllocsPerRun(1000, func() { handler.ServeHTTP(discard{http.Header{}}, r) })
		}
		if got := count(m.Wrap(bare)) - count(bare); got > tt.most {
			t.Errorf("%s: %v allocations, want at most %v", tt.what, got, tt.most)
		}
	}
}

// A value that comes once costs one allocation more, for its key, whatever came before.
func TestWrap_NewValuesAllocations(t *testing.T) {
	if raceEnabled {
		return
	}
	limited := httplimit.Must(inMemory(t), "l", "1/1h", 1000, httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny)).Wrap(bare)
	r := httptest.NewRequest("GET", "/", nil)
	var values [2000][]string
	for i := range values {
		values[i] = []string{fmt.Sprint("key ", i)}
	}
	next := 0
	got := testing.AllocsPerRun(len(values)-1, func() {
		r.Header["X-Api-Key"] = values[next]
		next++
		limited.ServeHTTP(discard{http.Header{}}, r)
	}) - testing.AllocsPerRun(1000, func() { bare.ServeHTTP(discard{http.Header{}}, r) })
	if got > 3 {
		t.Errorf("%v allocations, want at most 3", got)
	}
}

// The key of a long value is not remembered: memory for keys is bounded.
func TestWrap_LongValuesAreNotRemembered(t *testing.T) {
	if raceEnabled {
		return
	}
	limited := httplimit.Must(inMemory(t), "l", "1/1h", 10_000, httplimit.ByHeader("X-Api-Key", httplimit.MissingDeny)).Wrap(bare)
	for size, remembered := range map[int]bool{256: true, 257: false} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", strings.Repeat("k", size))
		count := func(handler http.Handler) float64 {
			return testing.AllocsPerRun(1000, func() { handler.ServeHTTP(discard{http.Header{}}, r) })
		}
		if got := count(limited) - count(bare); (got <= 2) != remembered {
			t.Errorf("a value of %d bytes: %v allocations, want at most 2: %v", size, got, remembered)
		}
	}
}
