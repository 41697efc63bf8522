// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// secretive is a store with a secret.
type secretive struct {
	mete.Store
	secret byte
}

func (s secretive) DeriveKey(context.Context, string) ([32]byte, error) {
	return [32]byte{s.secret}, nil
}

// Without a HashKey, the secret of the store keys the hashes: middlewares with one secret
// limit together.
func TestHashKey_IsTheStores(t *testing.T) {
	store := storetest.NewModel(storetest.NewClock().Now)
	three := httplimit.Limit{Name: "three", Key: httplimit.ByHeader("X-API-Key", httplimit.MissingDeny), Bucket: hourly(t, 3)}
	for i, tt := range []struct {
		secret byte
		want   int
	}{{'a', 3}, {'a', 0}, {'b', 3}} {
		l, err := mete.New(secretive{store, tt.secret}, nil, mete.Config{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := httplimit.New(l, httplimit.Config{}, three)
		if err != nil {
			t.Fatal(err)
		}
		admitted := 0
		h := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { admitted++ }))
		for range 4 {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-API-Key", "k1")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if admitted != tt.want {
			t.Errorf("middleware %d with secret %c admitted %d, want %d", i, tt.secret, admitted, tt.want)
		}
	}
}

// A store that keeps no secret is refused where a limit hashes something, and only there.
func TestHashKey_RefusesARandomOne(t *testing.T) {
	type stranger struct{ mete.Store }
	l, err := mete.New(stranger{storetest.NewModel(storetest.NewClock().Now)}, nil, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	byHeader := httplimit.Limit{Name: "h", Key: httplimit.ByHeader("X-API-Key", httplimit.MissingDeny), Bucket: hourly(t, 3)}
	byAddress := httplimit.Limit{Name: "a", Key: httplimit.ByAddress(), Bucket: hourly(t, 3)}
	if _, err := httplimit.New(l, httplimit.Config{}, byHeader); err == nil || !strings.Contains(err.Error(), "set HashKey") {
		t.Errorf("by header: error %v; want one that names the remedy", err)
	}
	if _, err := httplimit.New(l, httplimit.Config{HashKey: []byte("k")}, byHeader); err != nil {
		t.Errorf("by header, with a HashKey: %v", err)
	}
	if _, err := httplimit.New(l, httplimit.Config{}, byAddress); err != nil {
		t.Errorf("by address: %v", err)
	}
}
