// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
)

// The middleware allocates the key and the status of a limit, and with fields
// those that it must write: their text, their values and the header's map.
func TestWrap_Allocations(t *testing.T) {
	if raceEnabled {
		return // pools forget on purpose then
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := mete.New(store, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what   string
		key    httplimit.Key
		fields []string
		most   float64
	}{
		{"by address", httplimit.ByAddress(), []string{"none"}, 2},
		{"by header", httplimit.ByHeader("X-Api-Key", httplimit.DenyMissing), []string{"none"}, 2},
		{"with fields", httplimit.ByAddress(), nil, 5},
	} {
		bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		m, err := httplimit.New(limiter, httplimit.Config{Fields: tt.fields}, httplimit.Limit{Name: "l", Bucket: hourly(t, 1_000_000), Key: tt.key})
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
