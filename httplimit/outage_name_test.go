// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// A silentStore answers no take.
type silentStore struct{ mete.Store }

func (silentStore) Take(_ context.Context, dst []bucket.Snapshot, _ []store.Charge, _ mete.Mode) ([]bucket.Snapshot, bool, error) {
	return dst, false, errors.New("silent")
}

// In an outage, a rule can be decided in memory and a route's limit let through. The
// decision shows the rule alone, and the middleware leaves its name.
func TestWrap_NamesLimitsInAnOutage(t *testing.T) {
	local, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load([]byte(`{"name": "rule", "limit_keys": [], "on_store_error": "local", "algorithm_config": {"rate": "1/1000h", "burst": 1}}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(silentStore{local}, m, mete.Config{Local: local})
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	route, err := httplimit.New(lim, httplimit.Config{OnDecision: func(_ context.Context, d *mete.Decision) { rules = append(rules, d.Rule) }},
		httplimit.Limit{Name: "route", Rate: "100/1m", Burst: 50, Key: httplimit.Everyone()})
	if err != nil {
		t.Fatal(err)
	}
	handler := route.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != want || len(rules) != i+1 || rules[i] != "rule" {
			t.Errorf("request %d: %d, decided by %q; want %d by the rule", i, w.Code, rules, want)
		}
	}
}
